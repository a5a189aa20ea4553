"""Normalisation: exporters express the same layer in several ways, and this replaces each by one form.

A *spelling* is a rewrite rule: given a node and the nodes that make its operands, it returns the nodes that replace
it. ``rewrite`` applies one to all nodes of a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnx
from onnx.helper import get_attribute_value

from converters.graph import AttributeValue, Graph, Node, is_dropout_at_inference, trimmed
from converters.models.onnx_opset import EXPLICIT_DEFAULTS
from converters.models.onnx_positions import STATE_INPUTS
from converters.passes.rewriting import Spelling, Surroundings, as_integers, rewrite
from converters.passes.spell_activations import (
    spell_activation,
    spell_clip,
    spell_composite,
    spell_hard_sigmoid,
    spell_slope,
    spell_softplus,
)
from converters.passes.spell_arithmetic import (
    round_scale,
    spell_gemm,
    spell_number,
    spell_product,
    spell_sum,
    write_out_sum,
)
from converters.passes.spell_attention import drop_guard, drop_zeros
from converters.passes.spell_layers import (
    absorb_bias,
    absorb_group_norm,
    absorb_layer_norm,
    absorb_unbiased_layer_norm,
    spell_global_pool,
    spell_norm_pool,
    spell_row_pool,
)
from converters.passes.spell_views import spell_expand, spell_slice, spell_view
from converters.passes.spell_windows import absorb_padding, spell_padding, spell_pool, spell_wrap
from converters.text import OPSET, prelude_functions

# Operators with windows over any number of axes, and the defaults of their attributes along each axis.
WINDOWED = frozenset({"AveragePool", "Conv", "ConvTranspose", "MaxPool"})
NEUTRAL: Mapping[str, int] = {"dilations": 1, "output_padding": 0, "pads": 0, "strides": 1}
OF_ANY_NUMBER = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})
ALONG_AXIS = frozenset(
    {
        *("ArgMax", "ArgMin", "Concat", "Gather", "GatherElements", "Hardmax", "LayerNormalization", "LogSoftmax"),
        *("RMSNormalization", "ScatterElements", "Softmax", "Split", "TopK"),
    }
)


def normalise(graph: Graph) -> Graph:
    """Return the graph after all spellings."""
    for spelling in SPELLINGS:
        graph = rewrite(graph, spelling)
    return graph


def drop_unused_outputs(node: Node, at: Surroundings) -> list[Node] | None:
    """Drop optional trailing outputs that nothing reads, such as a pool's indices; Dropout at inference is Identity."""
    # Outputs must stay in training mode, and ONNX Runtime requires them for attention that reads a past state.
    needs_all = node.attribute("training_mode") or (node.op_type == "Attention" and any(node.inputs[4:6]))
    formal = () if needs_all else _outputs(node.op_type)
    outputs = list(node.outputs)
    while 1 < len(outputs) <= len(formal) and formal[len(outputs) - 1] and not at.is_read(outputs[-1]):
        outputs.pop()
    if is_dropout_at_inference(node) and len(outputs) == 1:
        return [Node("Identity", node.inputs[:1], tuple(outputs))]
    return [node._replace(outputs=tuple(outputs))]


def drop_zero_states(node: Node, at: Surroundings) -> list[Node] | None:
    """Drop initial states of zeros from recurrent layers, since zeros are their default."""
    states = STATE_INPUTS.get(node.op_type)
    if not states:
        return None
    inputs = ["" if i in states and at.producer(x, "nn.Zeros") else x for i, x in enumerate(node.inputs)]
    return [node._replace(inputs=trimmed(inputs))]


def drop_single_operand(node: Node, at: Surroundings) -> list[Node] | None:
    """Replace a sum, maximum or concatenation of one operand by Identity."""
    if node.op_type not in OF_ANY_NUMBER or len(node.inputs) != 1:
        return None
    return [Node("Identity", node.inputs, node.outputs)]


def merge_concat(node: Node, at: Surroundings) -> list[Node] | None:
    """Merge concatenations along the same axis that only this one reads, as torch's older exporter does."""
    if node.op_type != "Concat":
        return None
    inputs: list[str] = []
    for x in node.inputs:
        inner = at.producer(x, "Concat")
        if inner is not None and inner.attributes == node.attributes and at.read_once(x):
            inputs += inner.inputs
        else:
            inputs.append(x)
    return [node._replace(inputs=tuple(inputs))]


def spell_axis(node: Node, at: Surroundings) -> list[Node] | None:
    """Count axes from the front, except that an axis equal to the operator's default is written as the default."""
    axis, rank = node.attribute("axis"), len(at.shapes.get(node.inputs[0], ())) if node.inputs else 0
    if node.op_type not in ALONG_AXIS or not isinstance(axis, int) or not rank:
        return None
    axis %= rank
    default = _defaults(node.op_type).get("axis")
    if isinstance(default, int) and default % rank == axis:
        axis = default
    return [node.with_attributes(axis=axis)]


def drop_defaults(node: Node, at: Surroundings) -> list[Node] | None:
    """Drop attributes that equal their defaults, and kernel shapes that the weight's shape gives."""
    defaults = _defaults(node.op_type)
    kept = tuple([(name, value) for name, value in node.attributes if not _equal(defaults.get(name), value)])
    if node.op_type in WINDOWED:
        kept = tuple([(name, value) for name, value in kept if set(as_integers(value)) != {NEUTRAL.get(name)}])
    if node.op_type in ("Conv", "ConvTranspose") and len(kernel := at.shapes.get(node.inputs[1], ())) > 2:
        kept = tuple([item for item in kept if item != ("kernel_shape", kernel[2:])])
    return [node._replace(attributes=kept)]


def _equal(default: AttributeValue | None, value: AttributeValue) -> bool:
    """Return whether an attribute equals its default; floats are compared with 32 bits."""
    if isinstance(default, float) and isinstance(value, float):
        return bool(np.float32(default) == np.float32(value))
    return default == value


@lru_cache(maxsize=1 << 10)
def _defaults(op_type: str) -> Mapping[str, AttributeValue]:
    """Return the defaults of an operator's attributes, without those that must be explicit."""
    explicit = EXPLICIT_DEFAULTS.get(op_type, {})
    values = {x.name: get_attribute_value(x) for x in _declared_defaults(op_type) if x.name not in explicit}
    decoded = {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in decoded.items()}


def _declared_defaults(op_type: str) -> Sequence[onnx.AttributeProto]:
    """Return the defaults in the operator's schema, or in the prelude if it is one of our functions."""
    if schema := _schema(op_type):
        defaults = [attribute.default_value for attribute in schema.attributes.values()]
        return [default for default in defaults if default.name]
    return next((f.attribute_proto for f in prelude_functions() if f"nn.{f.name}" == op_type), ())


@lru_cache(maxsize=1 << 10)
def _outputs(op_type: str) -> tuple[bool, ...]:
    """Return for every output of an operator whether it is optional."""
    schema = _schema(op_type)
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return tuple([output.option == optional for output in schema.outputs]) if schema else ()


def _schema(op_type: str) -> onnx.defs.OpSchema | None:
    return onnx.defs.get_schema(op_type, OPSET) if onnx.defs.has(op_type, OPSET) else None


# Each spelling comes after those that prepare the patterns it looks for, and before those that would change them.
SPELLINGS: tuple[Spelling, ...] = (
    drop_unused_outputs,
    spell_axis,
    drop_single_operand,
    write_out_sum,  # the patterns below have additions of two operands
    absorb_bias,  # before an added bias of one number becomes a constant
    spell_gemm,
    spell_number,  # makes the scales of which activations consist
    spell_clip,
    spell_hard_sigmoid,  # of clips
    spell_product,
    spell_activation,  # of HardSigmoid, and of scales behind products
    spell_softplus,
    spell_slope,
    drop_zeros,
    drop_guard,  # of scores without masks of zeros
    absorb_layer_norm,
    absorb_unbiased_layer_norm,  # of what is left: it would also take the scale of a norm with a bias
    spell_padding,
    absorb_padding,  # adds to explicit padding
    spell_pool,
    spell_global_pool,
    spell_norm_pool,
    spell_slice,
    spell_wrap,
    spell_expand,
    spell_view,
    spell_row_pool,  # of rows seen as an image; makes a view of the pooled row
    spell_view,
    spell_slice,  # merges slices between which there was a view
    merge_concat,
    absorb_group_norm,  # of groups in one form of reshape
    spell_composite,  # from here on no pattern is looked for
    spell_sum,
    round_scale,
    drop_zero_states,
    drop_defaults,
)
