"""Reads a prepared model as a graph: layers with weights become calls of ``nn`` functions, other operators are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto
from onnx.helper import get_attribute_value, make_tensor_type_proto, np_dtype_to_tensor_dtype

from converters.constants import constant_nodes, counts_as_weight, fill_nodes, read_array, weight_node
from converters.errors import OnnxModelError
from converters.graph import Attributes, AttributeValue, Graph, Node, Shape, attributes, trimmed, union
from converters.models.one_node import place
from converters.models.onnx_layers import Weight, layer_call
from converters.models.onnx_model import Source
from converters.models.onnx_opset import STANDARD_DOMAINS
from converters.models.onnx_plainer import Plainer
from converters.models.onnx_positions import VALUE_INPUTS
from converters.models.onnx_values import Values
from converters.tensor_types import element_type, spell_type, static_shape


def read_graph(source: Source) -> Graph:
    """Return the graph of a prepared model, operator by operator, before normalisation.

    Raises:
        OnnxModelError: a node is invalid, or has attributes that the text cannot express.
    """
    reader = _Reader(source)
    for node in source.nodes:
        reader.read(node)
    return reader.graph()


class _Reader:
    """One pass over the nodes. Values are renamed, so that no name of the model equals one that passes create."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.values = Values(source)
        self.plainer = Plainer(self.values)
        self.nodes: list[Node] = []
        self.names = {"": ""}  # name in the graph by name in the model
        self.shapes: dict[str, Shape] = {}
        self.types: dict[str, str] = {}
        self.params: dict[str, Mapping[str, int]] = {}
        self.inputs = tuple([self._named(x) for x in source.inputs])

    def read(self, node: NodeProto) -> None:
        """Append a node, unless it only makes constants or weights."""
        node = self.plainer.without_zero_bias(node)
        self.values.infer(node)
        node = self.plainer.plain(node)
        if not self.values.take_in(node):
            self.nodes += self._layer(node) or self._fill(node) or self._plain(node)

    def graph(self) -> Graph:
        """Return the graph of the nodes read, with the constants and weights that are outputs of the model."""
        outputs = [self._operand(x, x in self.values.in_full) for x in self.source.outputs]
        for x, kind in self.values.types.items():
            if x in self.names and kind.WhichOneof("value") == "tensor_type":
                self._describe(self.names[x], kind)
        for x, output in zip(self.source.outputs, outputs, strict=True):
            if self.types.get(output, "" if output in self.shapes else "[]").endswith("[]"):
                raise OnnxModelError(f"output {x!r}: expected a tensor of known rank, got another or an unknown type.")
        nodes, domains = tuple(self.nodes), self.source.domains
        return Graph(
            self.inputs, tuple(outputs), nodes, self.shapes, types=self.types, domains=domains, params=self.params
        )

    def _describe(self, output: str, kind: TypeProto) -> None:
        shape = static_shape(kind)
        if shape is not None:
            self.shapes[output] = shape
        if shape is None or element_type(kind) != TensorProto.FLOAT:
            self.types[output] = spell_type(kind)

    def _named(self, x: str) -> str:
        return self.names.setdefault(x, f"x{len(self.names)}")

    def _fresh(self) -> str:
        return self._named(f"\0{len(self.names)}")

    def _layer(self, node: NodeProto) -> list[Node]:
        """Return a call of an ``nn`` function for a node with weights; empty if there is no such function."""
        if node.domain == "nn":
            if (len(node.input), len(node.output)) != (1, 1):
                raise OnnxModelError(f"{place(node)}: expected a layer with one input and one output, got others.")
            layer = tuple([self._named(x) for x in node.output])
            return [Node(f"nn.{node.op_type}", (self._operand(node.input[0]),), layer, _attributes(node), layer)]
        if node.domain not in STANDARD_DOMAINS or len(node.input) < 2 or len(node.output) != 1:
            return []
        own = [self.values.weight_at(node, index) for index, x in enumerate(node.input) if index and x]
        known = [weight for weight in own if weight is not None]
        if len(known) < len(own) or element_type(self.values.types.get(node.input[0])) != TensorProto.FLOAT:
            return []
        call = layer_call(node, dict(_attributes(node)), known, self.values.shape(node.input[0]))
        if call is None:
            return []
        op_type, values = call
        identity = ",".join(weight.identity for weight in known)
        self.params[identity] = union(weight.params for weight in known)
        return [Node(op_type, (self._operand(node.input[0]),), (self._named(node.output[0]),), values, (identity,))]

    def _fill(self, node: NodeProto) -> list[Node]:
        """Return nodes that replace ConstantOfShape, whose value attribute is a tensor; empty for other operators."""
        if node.op_type != "ConstantOfShape" or node.domain not in STANDARD_DOMAINS:
            return []
        numbers = read_array(node.attribute[0].t).ravel() if node.attribute else np.zeros(1, np.float32)
        if numbers.size != 1:
            raise OnnxModelError(f"{place(node)}: expected one number to fill with, got {numbers.size}.")
        number = numbers[0]
        output = self._named(node.output[0])
        shape = self.values.shape(node.output[0])
        if shape is not None:
            return fill_nodes(output, shape, number, np_dtype_to_tensor_dtype(number.dtype))
        filler, sizes = self._fresh(), self._operand(node.input[0])
        return [*constant_nodes(filler, np.asarray(number)), Node("Expand", (filler, sizes), (output,))]

    def _plain(self, node: NodeProto) -> list[Node]:
        """Return a node as it is; constants and weights that it reads are appended to the graph before it."""
        by_value = VALUE_INPUTS.get(node.op_type, ())
        given = ["" if index in by_value and self.values.is_empty(x) else x for index, x in enumerate(node.input)]
        makes_number = any(self.values.shape(x) == () for x in node.output)
        inputs = [
            self._operand(x, index in by_value, self.values.weight_at(node, index), without_axes=makes_number)
            for index, x in enumerate(given)
        ]
        outputs = [self._named(x) for x in node.output]
        domain = "" if node.domain in STANDARD_DOMAINS else f"{node.domain}."
        return [Node(domain + node.op_type, trimmed(inputs), tuple(outputs), _attributes(node))]

    def _operand(
        self, x: str, in_full: bool = False, weight: Weight | None = None, *, without_axes: bool = False
    ) -> str:
        """Return the graph's name of a value; the nodes of constants and weights are added anew for each reader.

        A scalar weight becomes a list of one, or with ``without_axes`` stays a scalar.
        """
        weight = weight or self.values.weights.get(x)
        array = self.values.arrays.get(x)
        if weight is not None:
            name = self._fresh()
            self.nodes.append(weight_node(name, weight.shape, weight.dtype, weight.identity))
            self.params[weight.identity] = union((self.params.get(weight.identity, {}), weight.params))
            self._describe(name, make_tensor_type_proto(weight.dtype, weight.shape or (1,)))
            if without_axes and not weight.shape:
                self.nodes.append(Node("Squeeze", (name,), (self._fresh(),)))
                name = self.nodes[-1].outputs[0]
                self._describe(name, make_tensor_type_proto(weight.dtype, ()))
        elif x in self.values.computed and counts_as_weight(self.values.arrays[x], in_full=in_full):
            name = self._computed_again(x)
        elif array is not None:
            name = self._fresh()
            self.nodes += constant_nodes(name, array, in_full=in_full)
            if self.source.learned is not None and x not in self.source.learned:
                self.params[name] = {}
            self._describe(name, make_tensor_type_proto(np_dtype_to_tensor_dtype(array.dtype), array.shape))
        else:
            name = self._named(x)
        return name

    def _computed_again(self, x: str) -> str:
        """Add the node that computes an array too long to be written, such as a causal mask, once for all readers."""
        if x not in self.names:
            self.nodes += self._plain(self.values.computed[x])
        return self._named(x)


def _attributes(node: NodeProto) -> Attributes:
    return attributes(**{attribute.name: _attribute_value(node, attribute) for attribute in node.attribute})


def _attribute_value(node: NodeProto, attribute: AttributeProto) -> AttributeValue | None:
    """Return the value of an attribute; None for an empty list of floats or text, which says as much as no attribute.

    Raises:
        OnnxModelError: the text cannot express the attribute.
    """
    value = get_attribute_value(attribute)
    if not value and attribute.type in (AttributeProto.FLOATS, AttributeProto.STRINGS):
        return None
    try:
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, int | float):
            return value
        if isinstance(value, list) and all(isinstance(item, int | float) for item in value):
            return tuple(value)
        if isinstance(value, list) and all(isinstance(item, bytes) for item in value):
            return tuple([item.decode() for item in value])
    except UnicodeDecodeError as e:
        raise OnnxModelError(f"{place(node)}: expected text as attribute {attribute.name}, got bytes.") from e
    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    raise OnnxModelError(f"{place(node)}: expected numbers and text as attributes, got a {kind}: {attribute.name}.")
