"""Fixes the sizes of a model's inputs, which ONNX models may leave open or give by name."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.shape_inference
from onnx import ModelProto, TensorShapeProto, ValueInfoProto

from converters.errors import OnnxModelError
from converters.graph import Shape


def with_ranks(model: ModelProto, input_shape: Shape | None) -> ModelProto:
    """Return the model with the ranks that ONNX's checker demands, though runtimes load models without them.

    The first input's is that of ``input_shape``; those of outputs are inferred.

    Raises:
        OnnxModelError: a rank stays unknown.
    """
    inputs = model.graph.input
    if input_shape is not None and inputs and _lacks_rank(inputs[0]):
        inputs[0].type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in input_shape)
    for value in filter(_lacks_rank, inputs):
        raise OnnxModelError(
            f"input {value.name!r}: expected a tensor of known rank, got one without a shape. Give the shape of the "
            "first input: --input-shape, or input_shape=."
        )
    if any(map(_lacks_rank, model.graph.output)):
        model = onnx.shape_inference.infer_shapes(model)
    for value in filter(_lacks_rank, model.graph.output):
        raise OnnxModelError(f"output {value.name!r}: expected a tensor of known rank, got one without a shape.")
    return model


def _lacks_rank(value: ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") == "tensor_type" and not value.type.tensor_type.HasField("shape")


def fix_sizes(inputs: Sequence[ValueInfoProto], input_shape: Shape | None) -> dict[str, int]:
    """Give every input a fixed shape, in place.

    Args:
        inputs: inputs of the model, without weights.
        input_shape: shape of the first input; its sizes also apply to axes of the same name in other inputs. A batch
            size that remains open becomes 1.

    Returns:
        The sizes by name.

    Raises:
        OnnxModelError: a size other than the batch stays open, or ``input_shape`` does not fit.
    """
    sizes: dict[str, int] = {}
    if input_shape is not None:
        if not inputs:
            raise OnnxModelError(f"expected an input of shape {_spell(input_shape)}, got a model without inputs.")
        _take_shape(inputs[0], input_shape, sizes)
    for value in inputs:
        if not value.type.tensor_type.HasField("shape"):
            raise OnnxModelError(f"input {value.name!r}: expected a tensor of known rank, got another type.")
        spelled = _spell_axes(value)
        for axis, size in enumerate(axes(value)):
            if size.dim_value > 0:
                continue
            if axis > 0 and size.dim_param not in sizes:
                raise OnnxModelError(
                    f"input {value.name!r}: expected fixed sizes, got {spelled}. "
                    + (
                        "Give the whole shape of the first input: --input-shape, or input_shape=."
                        if value is inputs[0]
                        else (
                            f"Only those of the first input, {inputs[0].name!r}, can be given: set the others in the "
                            "file."
                        )
                    )
                )
            size.dim_value = sizes.setdefault(size.dim_param, 1) if size.dim_param else 1
    return sizes


def axes(value: ValueInfoProto) -> Sequence[TensorShapeProto.Dimension]:
    """Return the axes of a tensor; an empty list if its rank is unknown."""
    return list(value.type.tensor_type.shape.dim)


def _take_shape(value: ValueInfoProto, input_shape: Shape, sizes: dict[str, int]) -> None:
    if min(input_shape, default=1) < 1:
        raise OnnxModelError(f"input {value.name!r}: expected sizes of 1 or more, got {_spell(input_shape)}.")
    fits = [size.dim_value in (given, 0, -1) for size, given in zip(axes(value), input_shape, strict=False)]
    if len(input_shape) != len(axes(value)) or not all(fits):
        raise OnnxModelError(
            f"input {value.name!r}: expected a shape like {_spell_axes(value)}, got {_spell(input_shape)}."
        )
    for size, given in zip(axes(value), input_shape, strict=True):
        if size.dim_param:
            sizes[size.dim_param] = given
        size.dim_value = given


def _spell_axes(value: ValueInfoProto) -> str:
    return ",".join(str(size.dim_value) if size.dim_value > 0 else size.dim_param or "?" for size in axes(value))


def _spell(shape: Shape) -> str:
    return ",".join(map(str, shape))
