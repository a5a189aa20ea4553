"""Inlines the functions of a model, except those of our prelude (``nn.Conv``, …; see ``converters/text.py``)."""

from __future__ import annotations

from collections.abc import Sequence

import onnx.inliner
from onnx import ModelProto

from converters.errors import OnnxModelError
from converters.graph import CALL
from converters.text import OWN_DOMAINS, prelude_functions

LAYER_FUNCTIONS = frozenset(
    {"BatchNormalization", "Conv", "ConvBias", "LayerNormalization", "Linear", "LinearBias", "Weight"}
)


def without_functions(model: ModelProto) -> ModelProto:
    """Return the model with its functions inlined, except the layers of the prelude (the ``nn`` functions).

    Raises:
        OnnxModelError: the model calls functions of our domains that differ from the prelude's.
    """
    prelude = {function.name: function.SerializeToString(deterministic=True) for function in prelude_functions()}
    layers = [
        (function.domain, function.name)
        for function in model.functions
        if function.name in LAYER_FUNCTIONS
        and prelude.get(function.name) == function.SerializeToString(deterministic=True)
    ]
    _add_defaults(model, layers)
    if layers:
        model = onnx.inliner.inline_selected_functions(model, layers, exclude=True)
    elif model.functions:
        model = onnx.inliner.inline_local_functions(model, convert_version=True)
    for node in model.graph.node:
        is_ours = node.domain in OWN_DOMAINS or node.domain.startswith(CALL)  # graphs cannot tell these from calls
        if is_ours and (node.domain, node.op_type) not in layers:
            raise OnnxModelError(
                f"expected functions of domain {node.domain} to be the prelude's, got {node.op_type}. "
                "Write the text with its prelude: nasrlm convert --out."
            )
    return model


def _add_defaults(model: ModelProto, layers: Sequence[tuple[str, str]]) -> None:
    """Add to calls the defaults of attributes that they leave out, because the inliner ignores these defaults."""
    defaults = {(function.domain, function.name): function.attribute_proto for function in model.functions}
    for node in [*model.graph.node, *(node for function in model.functions for node in function.node)]:
        called = (node.domain, node.op_type)
        if called in defaults and called not in layers:
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend([default for default in defaults[called] if default.name not in given])
