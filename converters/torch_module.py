"""A torch module as an ONNX model, by torch's own exporter."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING
from unittest.mock import patch

import onnx

from converters.errors import OnnxModelError, one_line_errors
from converters.graph import Shape
from converters.onnx_model import LEARNED, refuse_branches

if TYPE_CHECKING:
    import torch

# torch itself is imported where it is used: it takes seconds, and who converts ONNX files needs none.

EXPORT_OPSET = 20  # the last that the TorchScript exporter knows


def export_module(module: torch.nn.Module, input_shape: Shape) -> onnx.ModelProto:
    """The ONNX model of a module in evaluation mode, weights included, batch norms not yet folded.

    One and the same module has one and the same text: which exporter takes it depends on its operators alone. Its
    parameters are named in the metadata, see ``LEARNED``.

    Args:
        module: takes one tensor: floats, or integers such as token ids where it does not take floats.
        input_shape: of that tensor, batch included.

    Raises:
        OnnxModelError: no module, no shape, the module does not take such an input, what it computes is decided by
            the input's values, or torch cannot export it.

    Cost: a second for a ResNet-50; some more where the newer exporter is needed.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise OnnxModelError(f"expected a torch.nn.Module, got {module!r:.60}. Of a class or function, call it first.")
    if not isinstance(input_shape, Sequence) or not all(isinstance(size, Integral) for size in input_shape):
        raise OnnxModelError(f"expected a shape such as (1, 3, 224, 224), batch included, got {input_shape!r:.60}.")
    spelled = ",".join(map(str, input_shape))
    with _evaluation_mode(module), torch.no_grad(), one_line_errors(f"expected a module that takes {spelled}"):
        example = _example(module, input_shape)
    with _evaluation_mode(module), _quiet() as warned:
        model = _traced(module, example)
        parameters = [name for name, _ in _of_one_input(module).named_parameters(remove_duplicate=False)]
    model.metadata_props.add(key=LEARNED, value="\n".join(parameters))
    if any("to a Python" in str(warning.message) for warning in warned):  # of sizes, which is no matter, or of values
        _check_decisions(module, example)
    return model


def _traced(module: torch.nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """By the TorchScript exporter, which takes little time; what it does not know, by the newer one."""
    import torch

    buffer = io.BytesIO()
    try:
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
    except OnnxModelError as refused:
        if any(getattr(part, "proj_size", 0) for part in module.modules()):
            raise  # the newer one leaves the projections of an LSTM out
        try:
            return _exported_anew(module, example)
        except Exception:  # of many kinds, each pages long
            raise refused from None
    return model


def _exported_anew(module: torch.nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """By the newer exporter; not optimised, or batch norms would be folded, and parameters lost."""
    import torch

    program = torch.onnx.export(
        _of_one_input(module), (example,), dynamo=True, verbose=False, optimize=False, opset_version=EXPORT_OPSET
    )
    assert program is not None, "there is one where no file is named"
    return program.model_proto


@contextmanager
def _quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Exporters say much that is no concern of ours; of their warnings those of tracing are kept."""
    import torch

    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            patch.object(torch._C, "_jit_onnx_log", create=True),  # NOTE: torch 2.13 prints what fails to stdout
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", torch.jit.TracerWarning)  # type: ignore[attr-defined]
            yield warned
    finally:
        logging.disable(disabled)


def _of_one_input(module: torch.nn.Module) -> torch.nn.Module:
    """The module with no other argument: the exporter would make inputs of numbers and flags that have defaults."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        return module  # which is compiled, not traced

    class OfOneInput(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: torch.Tensor) -> object:
            return self.module(x)

    return OfOneInput().eval()


def _check_decisions(module: torch.nn.Module, example: torch.Tensor) -> None:
    """Refuse a module that looks at values of its input: an export shows only what this example led to.

    Sizes may be looked at, and values of parameters and buffers.
    """
    import torch

    looks = [
        getattr(torch.Tensor, name) for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist")
    ]

    class Watched(torch.Tensor):
        """As is everything that is computed of it."""

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if func in looks:
                raise OnnxModelError("expected the same operators for every input, got a decision by its values.")
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]

    with _evaluation_mode(module), torch.no_grad():
        module(example.as_subclass(Watched))


def _example(module: torch.nn.Module, input_shape: Shape) -> torch.Tensor:
    """An input that the module takes."""
    import torch

    parameter = next(iter(module.parameters()), torch.zeros(()))
    floats = torch.zeros(input_shape, dtype=parameter.dtype, device=parameter.device)
    try:
        module(floats)
    except (RuntimeError, IndexError, TypeError) as error:
        integers = torch.zeros(input_shape, dtype=torch.int64, device=parameter.device)
        try:
            module(integers)
        except (RuntimeError, IndexError, TypeError):
            raise error from None
        return integers
    return floats


@contextmanager
def _evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """For a while; each part is left in the mode it was in."""
    was_training = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in was_training.items():
            part.training = training
