"""ONNX tensor types: their element type, their shape, and their form in ONNX text."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto, TypeProto

from converters.graph import Shape


def element_type(kind: TypeProto | None) -> int:
    """Return the element type of a tensor type; UNDEFINED for any other type."""
    return kind.tensor_type.elem_type if kind is not None else TensorProto.UNDEFINED


def static_shape(kind: TypeProto | None) -> Shape | None:
    """Return the shape, or None if a size is unknown."""
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    return tuple([size.dim_value for size in sizes]) if all(size.HasField("dim_value") for size in sizes) else None


def spell_type(kind: TypeProto) -> str:
    """Return a tensor type as ONNX text writes it, with ``?`` for unknown sizes and ``[]`` for an unknown rank."""
    element = TensorProto.DataType.Name(element_type(kind)).lower()
    if not kind.tensor_type.HasField("shape"):
        return f"{element}[]"
    sizes = [size.dim_value if size.HasField("dim_value") else "?" for size in kind.tensor_type.shape.dim]
    return with_sizes(element, sizes)


def with_sizes(element: str, sizes: Sequence[int | str]) -> str:
    """Return the tensor type of elements such as ``float`` in the form of ONNX text; a scalar's has no brackets."""
    return f"{element}[{','.join(map(str, sizes))}]" if sizes else element
