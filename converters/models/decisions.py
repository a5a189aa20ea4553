"""Refuses modules that look at the values of their input: an export shows only what one example led to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from converters.errors import OnnxModelError

if TYPE_CHECKING:
    import torch

# torch itself is imported where it is used, see converters/models/torch_module.py.

# Methods of tensors, some of which are functions of torch too, whose answer is no tensor.
LOOKS = (
    *("__bool__", "__int__", "__float__", "__complex__", "__index__", "__contains__", "__array__"),
    *("item", "tolist", "numpy", "equal", "allclose", "is_nonzero"),
)
SELECTIONS = frozenset(
    {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave"}
)
DRAWS = 8  # other inputs beside zeros, where sizes depend on values
SPREAD = 3.0  # of their floats
WHOLE_NUMBERS = 2  # below which theirs are: ids that every vocabulary has

Run = Callable[["torch.Tensor"], object]


@dataclass
class _Calls:
    """What is called on a tensor and on all that is computed of it.

    Attributes:
        functions: each with the parameters that it was given.
        selects: whether how large a result is depends on values.
        answers: the tensors that were answered in the end.
    """

    functions: list[tuple[Any, ...]] = field(default_factory=list)
    selects: bool = False
    answers: tuple[torch.Tensor, ...] = ()


def check_decisions(run: Run, example: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Refuse a module that looks at values of its input, or does something else where others are selected.

    Sizes may be looked at, but for those of a selection, and values of parameters and buffers. What scripted functions
    do is not seen, nor what other inputs than a few random ones would select (docs/limits.md).

    Args:
        run: the module, in evaluation mode.
        example: that it takes.

    Returns:
        The tensors that it answers to the example.

    Raises:
        OnnxModelError: it decides by values.

    Cost: as much as the module takes for one input; ten times, where sizes depend on values.
    """
    import torch

    calls = _watched(run, example)
    generator = torch.Generator().manual_seed(0)
    others = [torch.zeros_like(example), *(drawn_like(example, generator) for _ in range(DRAWS))]
    for other in others if calls.selects else ():
        try:
            watched = _watched(run, other)
        except OnnxModelError:
            raise
        except Exception:  # of many kinds: it does not take these values
            continue
        if watched.functions != calls.functions:
            raise _refusal("other ones where values differ")
    return calls.answers


def drawn_like(example: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Another input of the shape, type and device of one: normal numbers, or small whole ones."""
    import torch

    if example.is_floating_point():
        drawn = SPREAD * torch.randn(example.shape, generator=generator)
    else:
        drawn = torch.randint(WHOLE_NUMBERS, example.shape, generator=generator)
    return drawn.to(example)


def _watched(run: Run, example: torch.Tensor) -> _Calls:
    """What is called.

    Raises:
        OnnxModelError: for a look at a value.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils.weak import WeakTensorKeyDictionary

    looks = {getattr(owner, name) for owner in (torch.Tensor, torch) for name in LOOKS if hasattr(owner, name)}
    calls, computed = _Calls(), WeakTensorKeyDictionary({example: None})  # which keeps no activations

    class Watch(TorchFunctionMode):
        """Knows what is computed of the example; a tensor of a kind of its own would stay in the module's buffers."""

        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            given = list(tensors_of((args, kwargs or {})))
            is_computed = any(x in computed for x in given)
            if is_computed and func in looks:
                raise _refusal("a decision by its values")
            answer = func(*args, **(kwargs or {}))
            if is_computed:
                for x in tensors_of(answer):
                    computed[x] = None
                calls.functions.append((func, *(id(x) for x in given if isinstance(x, torch.nn.Parameter))))
                calls.selects |= _selects(getattr(func, "__name__", ""), args)
            return answer

    with Watch():
        answer = run(example)
    calls.answers = tuple(tensors_of(answer))
    if not calls.answers:
        raise OnnxModelError(f"expected a module that answers with tensors, got {type(answer).__name__}.")
    return calls


def tensors_of(given: object) -> Iterator[torch.Tensor]:
    """What is a tensor among arguments or answers: language models give caches and numbers beside them."""
    import torch

    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, Mapping | tuple | list):
        for part in given.values() if isinstance(given, Mapping) else given:
            yield from tensors_of(part)
    elif is_dataclass(given):
        for each in fields(given):
            yield from tensors_of(getattr(given, each.name))


def _selects(function: str, given: tuple[Any, ...]) -> bool:
    import torch

    if function != "__getitem__":
        return function in SELECTIONS or (function == "where" and len(given) == 1)
    indices = given[1] if isinstance(given[1], tuple) else (given[1],)
    return any(isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8) for x in indices)


def _refusal(got: str) -> OnnxModelError:
    return OnnxModelError(f"expected the same operators for every input, got {got}.")
