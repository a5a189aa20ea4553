"""Refuses modules whose computation depends on the values of their input, as an export records only one example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from traceback import extract_stack
from typing import TYPE_CHECKING, Any

from converters.errors import OnnxModelError

if TYPE_CHECKING:
    import torch

# torch is imported inside functions, see converters/models/torch_module.py.

# Methods of tensors, some of which are functions of torch too, that return Python values instead of tensors.
LOOKS = (
    *("__bool__", "__int__", "__float__", "__complex__", "__index__", "__contains__", "__array__"),
    *("item", "tolist", "numpy", "equal", "allclose", "is_nonzero"),
)
# Those of them that answer yes or no, which is tried both ways.
CHOICES = frozenset({"__bool__", "__contains__", "equal", "allclose", "is_nonzero"})
SELECTIONS = frozenset(
    {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "bincount", "repeat_interleave"}
)
MAX_CHOICES = 16  # each costs one run of the module
DRAWS = 8  # random inputs to try, besides zeros, if sizes depend on values
SPREAD = 3.0  # standard deviation of random floats
WHOLE_NUMBERS = 2  # random integers are below this: ids that every vocabulary has

Run = Callable[..., object]  # takes one or several tensors


@dataclass
class _Calls:
    """The functions called on the inputs and on everything computed from them.

    Attributes:
        functions: the functions, each with the ids of the parameters among its arguments.
        selects: whether the size of any result depends on values.
        choices: where values were looked at with the answer yes or no.
        answers: the tensors that the module returned.
    """

    functions: list[tuple[Any, ...]] = field(default_factory=list)
    selects: bool = False
    choices: list[str] = field(default_factory=list)
    answers: tuple[torch.Tensor, ...] = ()


def check_decisions(run: Run, examples: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Refuse a module that reads values of its inputs in Python, or calls other functions for other input values.

    Reading sizes is allowed, and so are the values of parameters and buffers. A question with the answer yes or no is
    allowed if the opposite answer raises an error or changes nothing, as in checks and warnings. If sizes depend on
    values, as with boolean masks, the calls for a few random inputs are compared. Not detected: what scripted functions
    do, and differences that only other inputs would show (docs/limits.md).

    Args:
        run: the module, in evaluation mode.
        examples: inputs that it takes.

    Returns:
        The tensors that the module returns for the examples.

    Raises:
        OnnxModelError: the computation depends on the values of the inputs.

    Cost: one run of the module and one for each such question; nine more if sizes depend on values.
    """
    import torch

    calls = _watched(run, examples)
    for index, where in enumerate(calls.choices):
        if len(calls.choices) > MAX_CHOICES or _matters(run, examples, index, calls):
            raise _refusal(f"a decision that depends on its values in {where}")
    if not calls.selects:
        return calls.answers
    generator = torch.Generator().manual_seed(0)
    others = [list(map(torch.zeros_like, examples)), *(drawn_like(examples, generator) for _ in range(DRAWS))]
    for other in others:
        try:
            watched = _watched(run, other)
        except OnnxModelError:
            raise
        except Exception:  # of any kind: the module does not accept these values
            continue
        if watched.functions != calls.functions:
            raise _refusal("different ones for different values")
    return calls.answers


def _matters(run: Run, examples: Sequence[torch.Tensor], index: int, calls: _Calls) -> bool:
    """Return whether the opposite answer to one question about values leads to another result or to other calls."""
    import torch

    try:
        opposite = _watched(run, examples, index)
    except OnnxModelError:
        raise
    except Exception:  # of any kind: such values are no input of the module
        return False
    if opposite.functions != calls.functions or len(opposite.answers) != len(calls.answers):
        return True
    return not all(map(torch.equal, opposite.answers, calls.answers))


def drawn_like(examples: Sequence[torch.Tensor], generator: torch.Generator) -> list[torch.Tensor]:
    """Return random inputs of the shapes, types and devices of ``examples``: normal numbers, or integers 0 and 1."""
    import torch

    drawn = []
    for example in examples:
        if example.is_floating_point():
            numbers = SPREAD * torch.randn(example.shape, generator=generator)
        else:
            numbers = torch.randint(WHOLE_NUMBERS, example.shape, generator=generator)
        drawn.append(numbers.to(example))
    return drawn


def copies(examples: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return copies of a module's inputs, as layers may write into them."""
    return [example.clone() for example in examples]


def _watched(run: Run, examples: Sequence[torch.Tensor], opposite: int | None = None) -> _Calls:
    """Run the module on copies of the examples, and record the calls on what is computed from them.

    Args:
        run: the module.
        examples: its inputs.
        opposite: index of a question about values that gets the opposite answer.

    Raises:
        OnnxModelError: the module reads a value other than yes or no.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils.weak import WeakTensorKeyDictionary

    looks = {getattr(owner, name) for owner in (torch.Tensor, torch) for name in LOOKS if hasattr(owner, name)}
    calls, inputs = _Calls(), copies(examples)
    computed = WeakTensorKeyDictionary(dict.fromkeys(inputs))  # weak, so that activations can be freed

    class Watch(TorchFunctionMode):
        """Tracks what is computed from the inputs; a tensor subclass would stay in the module's buffers instead."""

        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            given = list(tensors_of((args, kwargs or {})))
            is_computed = any(x in computed for x in given)
            if is_computed and func in looks:
                if func.__name__ not in CHOICES:
                    raise _refusal(f"a decision that depends on its values in {_place()}")
                calls.choices.append(_place())
                return bool(func(*args, **(kwargs or {}))) != (opposite == len(calls.choices) - 1)
            answer = func(*args, **(kwargs or {}))
            if is_computed:
                for x in tensors_of(answer):
                    computed[x] = None
                calls.functions.append((func, *(id(x) for x in given if isinstance(x, torch.nn.Parameter))))
                calls.selects |= _selects(getattr(func, "__name__", ""), args)
            return answer

    with Watch():
        answer = run(*inputs)
    calls.answers = tuple(tensors_of(answer))
    if not calls.answers:
        raise OnnxModelError(f"expected a module that returns tensors, got {type(answer).__name__}.")
    return calls


def tensors_of(given: object) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested arguments or results; language models also return caches and numbers."""
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


def _place() -> str:
    """Return the line that called torch, for messages."""
    import torch

    inner = (__file__, *torch.__path__)
    caller = next(frame for frame in reversed(extract_stack()) if not frame.filename.startswith(inner))
    return f"{Path(caller.filename).name}, line {caller.lineno}"


def _refusal(got: str) -> OnnxModelError:
    return OnnxModelError(f"expected the same operators for every input, got {got}.")
