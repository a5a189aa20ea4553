"""A torch module as an ONNX model, by torch's own exporter."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import TYPE_CHECKING
from unittest.mock import patch

import onnx

from converters.errors import OnnxModelError, one_line_errors
from converters.graph import Shape
from converters.models.decisions import check_decisions, drawn_like, tensors_of
from converters.models.onnx_model import LEARNED, refuse_branches
from converters.models.same_answers import Answered, check_answers

if TYPE_CHECKING:
    import torch

# torch itself is imported where it is used: it takes seconds, and who converts ONNX files needs none.

EXPORT_OPSET = 20  # the last that the TorchScript exporter knows


def export_module(module: torch.nn.Module, input_shape: Shape) -> onnx.ModelProto:
    """The ONNX model of a module in evaluation mode, weights included, batch norms not yet folded.

    One and the same module has one and the same text: which exporter takes it depends on its operators and, where the
    first one mistakes them, on whether this shows in what it answers. Its parameters are named in the metadata, see
    ``LEARNED``.

    Args:
        module: takes one tensor: floats, or integers such as token ids where it does not take floats.
        input_shape: of that tensor, batch included.

    Raises:
        OnnxModelError: no module, no shape, the module does not take such an input, what it computes is decided by
            the input's values, torch cannot export it, or exports something else, see ``check_answers``.

    Cost: a second or two for a ResNet-50; some more where the newer exporter is needed.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise OnnxModelError(f"expected a torch.nn.Module, got {module!r:.60}. Of a class or function, call it first.")
    if not isinstance(input_shape, Sequence) or not all(isinstance(size, Integral) for size in input_shape):
        raise OnnxModelError(f"expected a shape such as (1, 3, 224, 224), batch included, got {input_shape!r:.60}.")
    takes = f"expected a module that takes one tensor of {','.join(map(str, input_shape))}"
    with _evaluation_mode(module), torch.no_grad(), one_line_errors(takes):
        answered = _example(module, input_shape)
    with _evaluation_mode(module), _quiet():
        model = _exported(module, answered)
        parameters = [name for name, _ in _of_one_input(module).named_parameters(remove_duplicate=False)]
    model.metadata_props.add(key=LEARNED, value="\n".join(parameters))
    return model


def _exported(module: torch.nn.Module, answered: Answered) -> onnx.ModelProto:
    """Export a module by the TorchScript exporter, which takes little time, or by the newer one if that fails or errs.

    Raises:
        OnnxModelError: both do; what is said is of the first, and which operator the newer one lacks.
    """
    try:
        model = _traced(module, answered.example.clone())
        check_answers(model, module, answered)
    except OnnxModelError as refused:
        if any(getattr(part, "proj_size", 0) for part in module.modules()):
            raise  # the newer one leaves the projections of an LSTM out
        try:
            model = _exported_anew(module, answered.example.clone())
            check_answers(model, module, answered)
        except Exception as e:  # of many kinds, each pages long
            raise _refusal_of_both(refused, str(e)) from None
    return model


def _refusal_of_both(refused: OnnxModelError, of_newer: str) -> OnnxModelError:
    """What the older exporter lacks may be no hindrance: the newer one names what is."""
    lacking = re.search(r"No ONNX function found for <OpOverload\(op='([\w.]+)'", of_newer)
    return OnnxModelError(f"{refused} The newer exporter lacks {lacking[1]}.") if lacking else refused


def _traced(module: torch.nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """Export a module by the TorchScript exporter."""
    import torch

    buffer = io.BytesIO()
    with one_line_errors("expected a module that torch.onnx.export takes"):
        torch.onnx.export(
            _of_one_input(module),
            (example,),
            buffer,  # type: ignore[arg-type]
            dynamo=False,
            opset_version=EXPORT_OPSET,
            do_constant_folding=False,  # or a layer that is used twice would have two weights
            training=torch.onnx.TrainingMode.PRESERVE,  # or batch norms would be folded, and parameters lost
            keep_initializers_as_inputs=True,  # or layers with equal numbers would come out as one
        )
        model = onnx.load_from_string(buffer.getvalue())
        refuse_branches(model)
    return model


def _exported_anew(module: torch.nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """Export a module by the newer exporter; not optimised, or batch norms would be folded, and parameters lost."""
    import torch

    program = torch.onnx.export(
        _of_one_input(module), (example,), dynamo=True, verbose=False, optimize=False, opset_version=EXPORT_OPSET
    )
    assert program is not None, "there is one where no file is named"
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch's exporters log and print."""
    import torch

    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            patch.object(torch._C, "_jit_onnx_log", create=True),  # NOTE: torch 2.13 prints what fails to stdout
        ):
            yield
    finally:
        logging.disable(disabled)


def _of_one_input(module: torch.nn.Module) -> torch.nn.Module:
    """The module with no other argument, of which the exporter would make inputs, and with tensors as its answer."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        return module  # which is compiled, not traced

    class OfOneInput(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
            found = tuple(tensors_of(self.module(x)))
            return found[0] if len(found) == 1 else found

    made = OfOneInput()
    made.training = False  # `eval` would ask all of its parts again
    return made


def _example(module: torch.nn.Module, input_shape: Shape) -> Answered:
    """An input that the module takes, and what it answers.

    Raises:
        OnnxModelError: it takes neither floats nor integers, gives no tensor, or decides by their values.
    """
    import torch

    parameter = next(iter(module.parameters()), torch.zeros(()))
    floats = torch.zeros(input_shape, dtype=parameter.dtype, device=parameter.device)
    try:
        return _answered(module, floats)
    except OnnxModelError:
        raise
    except Exception as of_floats:  # whatever it has to say of them
        integers = torch.zeros(input_shape, dtype=torch.int64, device=parameter.device)
        try:
            return _answered(module, integers)
        except OnnxModelError:
            raise
        except Exception as of_integers:
            if str(of_integers) == str(of_floats):
                raise of_floats from None
            raise ValueError(f"for floats {of_floats}; for integers {of_integers}") from of_integers


def _answered(module: torch.nn.Module, zeros: torch.Tensor) -> Answered:
    """What a module answers to random numbers; to zeros if it does not take these, as when they are indices to it."""
    import torch

    if zeros.device.type == "cpu":  # elsewhere an index too large would leave the device unusable
        drawn = drawn_like(zeros, torch.Generator().manual_seed(1))  # 0 is of check_decisions
        try:
            return _run(module, drawn)
        except OnnxModelError:
            raise
        except Exception:  # of many kinds: zeros may do
            pass
    return _run(module, zeros)


def _run(module: torch.nn.Module, example: torch.Tensor) -> Answered:
    """Run a module on an example under ``check_decisions``; without it if only that fails, as with ``torch.cond``."""
    try:
        answers = check_decisions(module, example.clone())  # its layers may write into what they are given
    except OnnxModelError:
        raise
    except Exception:  # of many kinds
        answers = tuple(tensors_of(module(example.clone())))
    return Answered(example, answers)


@contextmanager
def _evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode for a while; each part is left in the mode it was in."""
    was_training = {part: part.training for part in module.modules()}
    with suppress(NotImplementedError):  # of what torch.export has made, which has one mode alone
        module.eval()
    try:
        yield
    finally:
        for part, training in was_training.items():
            part.training = training
