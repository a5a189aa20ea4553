"""Exports a torch module to an ONNX model with torch's own exporters."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from itertools import islice, product
from typing import TYPE_CHECKING
from unittest.mock import patch

import onnx

from converters.errors import OnnxModelError, one_line_errors
from converters.graph import Shape
from converters.models.decisions import check_decisions, copies, drawn_like, tensors_of
from converters.models.input_sizes import InputShape, shapes_of, spell_shape
from converters.models.onnx_model import refuse_branches
from converters.models.onnx_weights import LEARNED
from converters.models.same_answers import Answered, check_answers, input_names
from spaces.process_lock import lock_of_process

if TYPE_CHECKING:
    import torch

# torch is imported inside functions: importing it takes seconds, and converting ONNX files does not need it.

EXPORT_OPSET = 20  # the latest that the TorchScript exporter supports
# Kinds of a module's inputs to try: all of up to six inputs; those with one boolean at most of up to eight; floats and
# integers of up to ten.
MAX_TRIES = 1280

# Torch's exporters, and what is suppressed and replaced around them, belong to the whole process. A fork waits too,
# because no export could begin in a process that was forked during another one.
_ONE_AT_A_TIME = lock_of_process()


def export_module(module: torch.nn.Module, input_shape: InputShape) -> onnx.ModelProto:
    """Return the ONNX model of a module in evaluation mode, with weights and with batch norms not folded.

    The same module always gives the same text. The TorchScript exporter is used, or the newer exporter if the first
    fails or its model gives other outputs than the module. The module's parameters are listed in the model's metadata,
    see ``LEARNED``, unless torch has quantised layers of it: their weights count as in a file.

    Args:
        module: a module that takes one tensor or several, each of floats, or else integers such as token ids, or else
            booleans.
        input_shape: shape of its tensor, batch included, or a list of shapes if it takes several.

    Raises:
        OnnxModelError: ``module`` is no module or ``input_shape`` no shape, the module does not accept such inputs,
            its computation depends on the inputs' values, or torch cannot export it or exports something else, see
            ``check_answers``.

    Cost: a second or two for a ResNet-50; more if the newer exporter is needed. Of several threads, one exports at a
    time.
    """
    with _ONE_AT_A_TIME:
        return _exported_alone(module, input_shape)


def _exported_alone(module: torch.nn.Module, input_shape: InputShape) -> onnx.ModelProto:
    import torch

    if not isinstance(module, torch.nn.Module):
        raise OnnxModelError(f"expected a torch.nn.Module, got {module!r:.60}. Call a class or function first.")
    shapes = shapes_of(input_shape)
    takes = f"expected a module that takes {'one tensor' if len(shapes) == 1 else f'{len(shapes)} tensors'} of "
    with _evaluation_mode(module), torch.no_grad(), one_line_errors(takes + " and ".join(map(spell_shape, shapes))):
        answered = _example(module, shapes)
    with _evaluation_mode(module), _quiet():
        model = _exported(module, answered)
        parameters = [name for name, _ in _returning_tensors(module).named_parameters(remove_duplicate=False)]
    if not any(hasattr(part, "_packed_params") for part in module.modules()):  # quantised weights are no parameters
        model.metadata_props.add(key=LEARNED, value="\n".join(parameters))
    return model


def _exported(module: torch.nn.Module, answered: Answered) -> onnx.ModelProto:
    """Export a module with the TorchScript exporter, which is fast, or with the newer one if that fails or is wrong.

    Raises:
        OnnxModelError: both fail. The message is that of the first, with the operator that the newer one lacks.
    """
    try:
        model = _traced(module, answered.examples)
        check_answers(model, module, answered)
    except OnnxModelError as refused:
        if any(getattr(part, "proj_size", 0) for part in module.modules()):
            raise  # the newer exporter ignores the projections of an LSTM
        try:
            model = _exported_anew(module, answered.examples)
            check_answers(model, module, answered)
        except Exception as e:  # of any kind, with messages of several pages
            raise _refusal_of_both(refused, str(e)) from None
    return model


def _refusal_of_both(refused: OnnxModelError, of_newer: str) -> OnnxModelError:
    """Return the first exporter's error, with the operator that the newer one lacks, which is the actual obstacle."""
    lacking = re.search(r"No ONNX function found for <OpOverload\(op='([\w.]+)'", of_newer)
    return OnnxModelError(f"{refused} The newer exporter does not support {lacking[1]}.") if lacking else refused


def _traced(module: torch.nn.Module, examples: Sequence[torch.Tensor]) -> onnx.ModelProto:
    """Export a module with the TorchScript exporter."""
    import torch

    buffer = io.BytesIO()
    with one_line_errors("expected a module that torch.onnx.export takes"):
        torch.onnx.export(
            _returning_tensors(module),
            tuple(copies(examples)),
            buffer,  # type: ignore[arg-type]
            dynamo=False,
            input_names=input_names(examples),
            opset_version=EXPORT_OPSET,
            do_constant_folding=False,  # otherwise a layer that is used twice would have two weights
            training=torch.onnx.TrainingMode.PRESERVE,  # otherwise batch norms would be folded and parameters lost
            keep_initializers_as_inputs=True,  # otherwise layers with equal weights would be merged
        )
        model = onnx.load_from_string(buffer.getvalue())
        refuse_branches(model)
    for node in model.graph.node:  # ``permute(0, -1, 1)`` is exported as it stands, which is no valid Transpose
        for order in (attribute.ints for attribute in node.attribute if node.op_type == "Transpose"):
            order[:] = [axis % len(order) for axis in order]
    return model


def _exported_anew(module: torch.nn.Module, examples: Sequence[torch.Tensor]) -> onnx.ModelProto:
    """Export a module with the newer exporter, not optimised, since that would fold batch norms and lose parameters."""
    import torch

    with redirect_stderr(io.StringIO()):  # where it prints the graph that it fails at
        program = torch.onnx.export(
            _returning_tensors(module),
            tuple(copies(examples)),
            dynamo=True,
            verbose=False,
            optimize=False,
            input_names=input_names(examples),
            opset_version=EXPORT_OPSET,
        )
    assert program is not None, "there is one where no file is named"
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress what torch's exporters log and print."""
    import torch

    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch also logs, with its whole stack, errors that it raises
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            patch.object(torch._C, "_jit_onnx_log", create=True),  # NOTE: torch 2.13 prints failures to stdout
        ):
            yield
    finally:
        logging.disable(disabled)


def _returning_tensors(module: torch.nn.Module) -> torch.nn.Module:
    """Wrap a module so that it returns tensors, and has no other arguments, which would become inputs of the model."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        return module  # it is compiled, not traced

    class ReturningTensors(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
            found = tuple(tensors_of(self.module(*inputs)))
            return found[0] if len(found) == 1 else found

    made = ReturningTensors()
    made.training = False  # `eval` would visit all submodules again
    return made


def _example(module: torch.nn.Module, shapes: Sequence[Shape]) -> Answered:
    """Return inputs that the module accepts, with its outputs.

    Raises:
        OnnxModelError: the module returns no tensor, or its computation depends on the inputs' values.
        Exception: the module accepts neither floats nor integers nor booleans.
    """
    import torch

    parameters = list(module.parameters())
    of_floats = (each for each in parameters if each.is_floating_point())  # others are complex, or whole numbers
    parameter = next(of_floats, torch.zeros((), device=parameters[0].device if parameters else None))
    kinds = {"floats": parameter.dtype, "integers": torch.int64, "booleans": torch.bool}
    failures: dict[str, Exception] = {}
    tried = (
        chosen
        for booleans in range(len(shapes) + 1)  # which are the rarest
        for chosen in product(kinds, repeat=len(shapes))
        if chosen.count("booleans") == booleans
    )
    for chosen in islice(tried, MAX_TRIES):
        zeros = [
            torch.zeros(x, dtype=kinds[kind], device=parameter.device) for x, kind in zip(shapes, chosen, strict=True)
        ]
        try:
            return _answered(module, zeros)
        except OnnxModelError:
            raise
        except Exception as e:  # of any kind: the module does not accept these
            if "booleans" not in chosen and str(e) not in map(str, failures.values()):
                failures[f"for {', '.join(chosen)}"] = e
    if len(failures) == 1:
        raise next(iter(failures.values()))
    raise ValueError("; ".join(f"{of_kinds} {e}" for of_kinds, e in failures.items()))


def _answered(module: torch.nn.Module, zeros: Sequence[torch.Tensor]) -> Answered:
    """Run a module on random numbers, or on zeros if it does not accept those, as when they are indices."""
    import torch

    if zeros[0].device.type == "cpu":  # on other devices an index out of range would leave the device unusable
        drawn = drawn_like(zeros, torch.Generator().manual_seed(1))  # check_decisions uses seed 0
        try:
            return _run(module, drawn)
        except OnnxModelError:
            raise
        except Exception:  # of any kind; zeros may be accepted
            pass
    return _run(module, zeros)


def _run(module: torch.nn.Module, examples: Sequence[torch.Tensor]) -> Answered:
    """Run a module on examples with ``check_decisions``, or without if only that fails, as with ``torch.cond``.

    Raises:
        OnnxModelError: the module returns no tensor, or its computation depends on the inputs' values, also while it is
            traced: networks of ``transformers`` look whether a mask hides anything, but not then.
    """
    import torch

    try:
        return Answered(examples, check_decisions(module, examples))
    except OnnxModelError as refused:
        try:
            with patch.object(torch.jit, "is_tracing", return_value=True):
                check_decisions(module, examples)
        except Exception:  # of any kind
            raise refused from None
    except Exception:  # of any kind; only the check may fail
        pass
    return Answered(examples, tuple(tensors_of(module(*copies(examples)))))


@contextmanager
def _evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode temporarily; afterwards every submodule has its former mode."""
    was_training = {part: part.training for part in module.modules()}
    with suppress(NotImplementedError):  # raised by modules from torch.export, which have a single mode
        module.eval()
    try:
        yield
    finally:
        for part, training in was_training.items():
            part.training = training
