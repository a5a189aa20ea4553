"""Refuses modules that look at the values of their input: an export shows only what one example led to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from converters.errors import OnnxModelError

if TYPE_CHECKING:
    import torch

# torch itself is imported where it is used, see converters/torch_module.py.

LOOKS = ("__bool__", "__int__", "__float__", "__index__", "__array__", "item", "tolist", "numpy")  # of a tensor
COMPARISONS = ("equal", "allclose", "is_nonzero")  # of torch, whose answer is no tensor
SELECTIONS = frozenset({"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount"})
DRAWS = 8  # other inputs, where sizes depend on values
SPREAD = 3.0  # of their floats
WHOLE_NUMBERS = 2  # below which theirs are: ids that every vocabulary has

Run = Callable[["torch.Tensor"], object]


@dataclass
class _Calls:
    """What is called on a tensor and on all that is computed of it.

    Attributes:
        functions: each with the parameters that it was given.
        selects: whether how large a result is depends on values.
    """

    functions: list[tuple[Any, ...]] = field(default_factory=list)
    selects: bool = False


def check_decisions(run: Run, example: torch.Tensor) -> None:
    """Refuse a module that looks at values of its input, or does something else where others are selected.

    Sizes may be looked at, but for those of a selection, and values of parameters and buffers.

    Args:
        run: the module, in evaluation mode.
        example: that it takes.

    Raises:
        OnnxModelError: it decides by values.
    """
    import torch

    calls = _watched(run, example)
    generator = torch.Generator().manual_seed(0)
    for _ in range(DRAWS if calls and calls.selects else 0):
        if example.is_floating_point():
            other = SPREAD * torch.randn(example.shape, generator=generator)
        else:
            other = torch.randint(WHOLE_NUMBERS, example.shape, generator=generator)
        others = _watched(run, other.to(example))
        if others and calls and others.functions != calls.functions:
            raise _refusal("other ones where values differ")


def _watched(run: Run, example: torch.Tensor) -> _Calls | None:
    """What is called; None where it fails, as for a tensor that it does not take.

    Raises:
        OnnxModelError: for a look at a value.
    """
    import torch

    looks = {getattr(torch.Tensor, name) for name in LOOKS} | {getattr(torch, name) for name in COMPARISONS}
    calls = _Calls()

    class Watched(torch.Tensor):
        """As is everything that is computed of it."""

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if func in looks:
                raise _refusal("a decision by its values")
            given = (*args, *(kwargs or {}).values())
            calls.functions.append((func, *(id(x) for x in given if isinstance(x, torch.nn.Parameter))))
            calls.selects |= _selects(getattr(func, "__name__", ""), given)
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    try:
        run(example.as_subclass(Watched))
    except OnnxModelError:
        raise
    except Exception:  # of many kinds
        return None
    return calls


def _selects(function: str, given: tuple[Any, ...]) -> bool:
    import torch

    if function != "__getitem__":
        return function in SELECTIONS or (function == "where" and len(given) == 1)
    indices = given[1] if isinstance(given[1], tuple) else (given[1],)
    return any(isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8) for x in indices)


def _refusal(got: str) -> OnnxModelError:
    return OnnxModelError(f"expected the same operators for every input, got {got}.")
