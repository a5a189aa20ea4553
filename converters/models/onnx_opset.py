"""Converts models to the pinned opset, and makes up for what onnx's version converter ignores."""

from __future__ import annotations

from collections.abc import Mapping

import onnx.shape_inference
import onnx.version_converter
from onnx import ModelProto, NodeProto
from onnx.helper import make_attribute

from converters.errors import OnnxModelError, one_line_errors
from converters.graph import AttributeValue
from converters.text import OPSET

STANDARD_DOMAINS = ("", "ai.onnx")
# Defaults of attributes without which onnx infers no type, or a wrong one.
EXPLICIT_DEFAULTS: Mapping[str, Mapping[str, AttributeValue]] = {
    "MeanVarianceNormalization": {"axes": (0, 2, 3)},
    "STFT": {"onesided": 1},
}
OLD_RESIZE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}  # before opset 11


def to_pinned_opset(model: ModelProto) -> ModelProto:
    """Return a model of any opset in the pinned one; attributes that type inference needs are explicit.

    Raises:
        OnnxModelError: the model cannot be converted.
    """
    resized = _resized_before_11(model)
    if _opset(model) != OPSET:
        _refuse_old_hardmax(model)
        with one_line_errors(f"expected a model that converts to opset {OPSET}"):
            # Some conversions depend on shapes, which onnx infers of few operators before opset 6.
            for opset in (6, OPSET) if _opset(model) < 6 else (OPSET,):
                model = onnx.version_converter.convert_version(onnx.shape_inference.infer_shapes(model), opset)
    for node in model.graph.node:
        if not resized.isdisjoint(node.output):
            node.input[1] = ""  # the regions, which the conversion invents
            _add_missing(node, OLD_RESIZE)
        _add_missing(node, EXPLICIT_DEFAULTS.get(node.op_type, {}))
        if node.op_type == "Pad" and node.domain in STANDARD_DOMAINS:
            _remove_attribute(node, "value")  # the conversion leaves it in modes that do not use it
    return model


def _opset(model: ModelProto) -> int:
    """Return the lowest opset of the standard operators that the model imports; the pinned one if it imports none."""
    return min([entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS], default=OPSET)


def _add_missing(node: NodeProto, defaults: Mapping[str, AttributeValue]) -> None:
    """Add default attributes that the node does not have."""
    for name, value in defaults.items():
        if all(attribute.name != name for attribute in node.attribute):
            node.attribute.append(make_attribute(name, value))


def _remove_attribute(node: NodeProto, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _resized_before_11(model: ModelProto) -> set[str]:
    """Return outputs of resizes before opset 11, whose coordinates differ; onnx's version converter ignores that."""
    resizes = [node for node in model.graph.node if node.op_type in ("Resize", "Upsample") and _opset(model) < 11]
    return {output for node in resizes if node.domain in STANDARD_DOMAINS for output in node.output}


def _refuse_old_hardmax(model: ModelProto) -> None:
    """Refuse Hardmax before opset 13: it flattened all axes from its axis on, and onnx's converter ignores that."""
    for node in model.graph.node:
        if node.op_type == "Hardmax" and node.domain in STANDARD_DOMAINS and _opset(model) < 13:
            raise OnnxModelError(
                f"expected Hardmax of opset 13 or later, got {next(iter(node.output))!r} of opset {_opset(model)}. "
                "Export it with a later opset."
            )
