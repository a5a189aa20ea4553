"""The shapes of inputs, as they are given, and as ONNX models leave their sizes open or give them by name."""

from __future__ import annotations

from collections.abc import Container, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import onnx.shape_inference
from onnx import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto

from converters.errors import OnnxModelError
from converters.graph import Shape
from converters.models.one_node import place

InputShape: TypeAlias = Shape | Sequence[Shape]  # of the only input, or of several
ADVICE = "Give the shape of every input up to this one: --input-shape, or input_shape=."
NO_SIZES = "()"  # how the shape of a single number is spelled in messages


def shapes_of(input_shape: InputShape) -> tuple[Shape, ...]:
    """Return the shapes of one input or of several.

    Raises:
        OnnxModelError: ``input_shape`` is neither a shape nor a list of shapes, or a size is below 1.
    """
    shapes: tuple[Any, ...] = (input_shape,)
    if isinstance(input_shape, Sequence) and input_shape and isinstance(input_shape[0], Sequence):
        shapes = tuple(input_shape)
    for shape in shapes:
        if not isinstance(shape, Sequence) or not all(isinstance(size, Integral) for size in shape):
            raise OnnxModelError(
                "expected a shape such as (1, 3, 224, 224), batch included, or a list of shapes, got "
                f"{input_shape!r:.60}."
            )
        if min(shape, default=1) < 1:
            raise OnnxModelError(f"input shape: expected sizes of 1 or more, got {spell_shape(shape)}.")
    return tuple(map(tuple, shapes))


def with_ranks(model: ModelProto, shapes: Sequence[Shape], weights: Container[str]) -> ModelProto:
    """Return the model with the ranks that ONNX's checker demands, though runtimes load models without them.

    Those of the first inputs are the ranks of ``shapes``; those of outputs are inferred, and their element types too.
    Inputs that are ``weights`` do not count.

    Raises:
        OnnxModelError: a rank stays unknown; for an output, the message names the node because of which.
    """
    inputs = model.graph.input
    for value, shape in zip([value for value in inputs if value.name not in weights], shapes, strict=False):
        if _lacks_rank(value):
            value.type.tensor_type.shape.dim.extend(TensorShapeProto.Dimension() for _ in shape)
    for value in filter(_lacks_rank, inputs):
        raise OnnxModelError(
            f"input {value.name!r}: expected a tensor of known rank, got one without a shape. {ADVICE}"
        )
    if any(map(_lacks_rank, model.graph.output)):
        model = onnx.shape_inference.infer_shapes(model)
    for value in filter(_lacks_rank, model.graph.output):
        raise OnnxModelError(
            f"output {value.name!r}: expected a tensor of known rank, got one without a shape"
            f"{_origin(model.graph, value.name)}."
        )
    return model


def _origin(graph: GraphProto, x: str) -> str:
    """Return words that name the first node on a way to a value that makes its rank unknown; "" if no node makes it."""
    ranked = {value.name for value in (*graph.value_info, *graph.input) if not _lacks_rank(value)}
    ranked.update(["", *(tensor.name for tensor in graph.initializer)])
    origin = ""
    for node in reversed(graph.node):
        if x in node.output:
            origin = f", from {place(node)}"
            x = next((y for y in node.input if y not in ranked), x)
    return origin


def _lacks_rank(value: ValueInfoProto) -> bool:
    return value.type.WhichOneof("value") in ("tensor_type", None) and not value.type.tensor_type.HasField("shape")


def fix_sizes(inputs: Sequence[ValueInfoProto], shapes: Sequence[Shape]) -> dict[str, int]:
    """Give every input a fixed shape, in place.

    Args:
        inputs: inputs of the model, without weights.
        shapes: shapes of the first inputs; their sizes also apply to axes of the same name in other inputs. A batch
            size that remains open becomes 1.

    Returns:
        The sizes by name.

    Raises:
        OnnxModelError: a size other than the batch stays open, or ``shapes`` do not fit.
    """
    sizes: dict[str, int] = {}
    if len(shapes) > len(inputs):
        got = (
            f"a model that takes only {', '.join(value.name for value in inputs)}"
            if inputs
            else "a model without inputs"
        )
        raise OnnxModelError(f"expected inputs of shape {' and '.join(map(spell_shape, shapes))}, got {got}.")
    for value in inputs:
        if not value.type.tensor_type.HasField("shape"):
            raise OnnxModelError(f"input {value.name!r}: expected a tensor of known rank, got another type.")
    for value, shape in zip(inputs, shapes, strict=False):
        _take_shape(value, shape, sizes)
    for value in inputs:
        spelled = _spell_axes(value)
        for axis, size in enumerate(axes(value)):
            if size.dim_value > 0:
                continue
            if axis > 0 and size.dim_param not in sizes:
                raise OnnxModelError(f"input {value.name!r}: expected fixed sizes, got {spelled}. {ADVICE}")
            size.dim_value = sizes.setdefault(size.dim_param, 1) if size.dim_param else 1
    return sizes


def axes(value: ValueInfoProto) -> Sequence[TensorShapeProto.Dimension]:
    """Return the axes of a tensor; an empty list if its rank is unknown."""
    return list(value.type.tensor_type.shape.dim)


def _take_shape(value: ValueInfoProto, shape: Shape, sizes: dict[str, int]) -> None:
    fits = [
        size.dim_value in (given, 0, -1) and sizes.get(size.dim_param, given) == given
        for size, given in zip(axes(value), shape, strict=False)
    ]
    if len(shape) != len(axes(value)) or not all(fits):
        raise OnnxModelError(
            f"input {value.name!r}: expected a shape like {_spell_axes(value)}, got {spell_shape(shape)}."
        )
    for size, given in zip(axes(value), shape, strict=True):
        if size.dim_param:
            sizes[size.dim_param] = given
        size.dim_value = given


def _spell_axes(value: ValueInfoProto) -> str:
    sizes = [str(size.dim_value) if size.dim_value > 0 else size.dim_param or "?" for size in axes(value)]
    return ",".join(sizes) or NO_SIZES


def spell_shape(shape: Sequence[int]) -> str:
    """Return the sizes of a shape, separated by commas; NO_SIZES for that of a single number."""
    return ",".join(map(str, shape)) or NO_SIZES
