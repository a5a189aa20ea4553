"""From a prepared model to a graph: what is constant is computed, layers with weights become calls of ours.

An array is a constant, of which every number is known; a weight, of which shape and type are; or a value that
depends on the inputs. What is made of constants alone is a constant, of weights and constants a weight.
"""

from __future__ import annotations

import hashlib
from math import prod

import numpy as np
import onnx
import onnx.shape_inference
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, numpy_helper
from onnx.helper import np_dtype_to_tensor_dtype

from converters.constants import Array, attributes, constant_nodes, fill_nodes, weight_node
from converters.graph import Attributes, AttributeValue, Graph, Node, Shape
from converters.one_node import evaluate, infer_types
from converters.onnx_layers import WEIGHT_INPUTS, Weight, layer_call
from converters.onnx_model import (
    MAX_CONSTANT_NUMBERS,
    STANDARD_DOMAINS,
    VALUE_INPUTS,
    OnnxModelError,
    Source,
    is_constant,
    value_inputs,
)

# Never computed ahead: chance, and the rounding that quantised networks are about.
NEVER_FOLDED = frozenset({"Bernoulli", "DequantizeLinear", "DynamicQuantizeLinear", "Multinomial", "QuantizeLinear"})
SIZED_BY_VALUES = frozenset({"Compress", "NonZero", "Unique"})  # what they make is about as small as what they read


def read_graph(source: Source) -> Graph:
    """The graph of a prepared model, operator by operator; ``normalise`` then gives it one spelling.

    Raises:
        OnnxModelError: a node is invalid, or has attributes that text cannot say.
    """
    reader = _Reader(source)
    for node in source.nodes:
        reader.read(node)
    return reader.graph()


class _Reader:
    """One pass over the nodes. Values are renamed, so that no name of the model meets one that passes make up."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.types = {**source.inputs, **source.weights}
        self.arrays: dict[str, Array] = {x: numpy_helper.to_array(tensor) for x, tensor in source.constants.items()}
        self.weights = {x: Weight(x, _static_shape(kind) or (), _dtype(kind)) for x, kind in source.weights.items()}
        self.in_full = value_inputs(source.nodes)
        self.nodes: list[Node] = []
        self.names = {"": ""}  # of values in the graph, by their names in the model
        self.shapes: dict[str, Shape] = {}
        self.inputs = tuple([self._named(x) for x in source.inputs])

    def read(self, node: NodeProto) -> None:
        """Compute a node, or append it."""
        self.types.update(self._infer(node))
        if arrays := self._computed(node):
            self.arrays.update(arrays)
        elif weights := self._made_of_weights(node):
            self.weights.update(weights)
        else:
            self.nodes += self._layer(node) or self._fill(node) or self._plain(node)

    def graph(self) -> Graph:
        """The nodes read so far, with the constants and weights that are outputs of the model."""
        outputs = [self._operand(x, x in self.in_full) for x in self.source.outputs]
        types: dict[str, str] = {}
        for x, kind in self.types.items():
            if x in self.names:
                shape = _static_shape(kind)
                if shape is not None:
                    self.shapes[self.names[x]] = shape
                if shape is None or _dtype(kind) != TensorProto.FLOAT:
                    types[self.names[x]] = _spell_type(kind)
        for x, output in zip(self.source.outputs, outputs, strict=True):
            if types.get(output, "float[").endswith("[]") or (output not in types and output not in self.shapes):
                raise OnnxModelError(f"output {x!r}: expected a tensor of known rank, got another or an unknown type.")
        return Graph(
            self.inputs, tuple(outputs), tuple(self.nodes), self.shapes, types=types, domains=self.source.domains
        )

    def _named(self, x: str) -> str:
        return self.names.setdefault(x, f"x{len(self.names)}")

    def _fresh(self) -> str:
        return self._named(f"\0{len(self.names)}")

    def _infer(self, node: NodeProto) -> dict[str, TypeProto]:
        if node.domain not in (*STANDARD_DOMAINS, "nn"):
            return {x: self.source.declared[x] for x in node.output if x in self.source.declared}
        try:
            return infer_types(node, self.types, self.arrays)
        except onnx.shape_inference.InferenceError as e:
            if any(x not in self.types and x not in self.arrays for x in node.input if x):
                return {}  # nothing is known of what another domain's operator made
            raise OnnxModelError(f"{_place(node)}: expected inputs that fit, got: {' '.join(str(e).split())}") from e

    def _computed(self, node: NodeProto) -> dict[str, Array] | None:
        """The outputs of a node whose inputs are constants, and shapes of anything."""
        if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
            return self._constant(node)
        if node.op_type == "Shape" and node.domain in STANDARD_DOMAINS and node.input[0] in self.types:
            given, shape = dict(_attributes(node)), _static_shape(self.types[node.input[0]])
            if shape is not None:
                return {node.output[0]: np.array(shape[given.get("start") : given.get("end")], dtype=np.int64)}
        if all(x in self.arrays for x in node.input if x) and self._may_fold(node):
            return evaluate(node, self.arrays)
        return None

    def _constant(self, node: NodeProto) -> dict[str, Array] | None:
        tensor = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if tensor is None:
            return evaluate(node, {})
        if is_constant(tensor) or node.output[0] in self.in_full:
            return {node.output[0]: numpy_helper.to_array(tensor)}
        return None

    def _may_fold(self, node: NodeProto) -> bool:
        if node.domain not in STANDARD_DOMAINS or node.op_type in NEVER_FOLDED or node.op_type.startswith("Random"):
            return False
        shapes = [_static_shape(self.types[x]) if x in self.types else None for x in node.output if x]
        small = all(shape is not None and prod(shape) <= MAX_CONSTANT_NUMBERS for shape in shapes)
        return small or node.op_type in SIZED_BY_VALUES

    def _made_of_weights(self, node: NodeProto) -> dict[str, Weight] | None:
        """Weights that a node makes of weights and constants alone."""
        if node.op_type == "Weight" and node.domain == "nn":
            given = dict(_attributes(node))
            return {node.output[0]: Weight(node.output[0], given["weight_shape"], given.get("dtype", 1))}
        operands = [x for x in node.input if x]
        constant = all(x in self.weights or x in self.arrays for x in operands)
        if not constant or node.domain not in STANDARD_DOMAINS or node.op_type in NEVER_FOLDED:
            return None
        if node.op_type != "Constant" and all(x in self.arrays for x in operands):
            return None
        made: dict[str, Weight] = {}
        for index, x in enumerate(node.output):
            shape = _static_shape(self.types[x]) if x in self.types else None
            if shape is None:
                return None
            made[x] = Weight(f"{self._identity(node)}.{index}", shape, _dtype(self.types[x]))
        return made

    def _identity(self, node: NodeProto) -> str:
        """Equal for equal computations on the same weights, but for Identity: exporters give equal values to
        different layers by it."""
        if node.op_type in ("Constant", "Identity"):
            return node.output[0]
        operands = [
            self.weights[x].identity if x in self.weights else _digest(self.arrays[x]) if x else "" for x in node.input
        ]
        return f"{node.op_type}{_attributes(node)}({', '.join(operands)})"

    def _layer(self, node: NodeProto) -> list[Node]:
        """A node with weights as one call into the ``nn`` functions, where there is such a function."""
        output = tuple([self._named(x) for x in node.output])
        if node.domain == "nn":
            return [Node(f"nn.{node.op_type}", (self._named(node.input[0]),), output, _attributes(node), output)]
        own = [self._weight(node, index) for index, x in enumerate(node.input) if index and x]
        known = [weight for weight in own if weight is not None]
        if node.domain not in STANDARD_DOMAINS or len(known) < len(own) or len(output) != 1:
            return []
        if _dtype(self.types.get(node.input[0])) != TensorProto.FLOAT:
            return []
        call = layer_call(node, dict(_attributes(node)), known)
        if call is None:
            return []
        identity = ",".join(weight.identity for weight in known)
        return [Node(call[0], (self._operand(node.input[0]),), output, call[1], (identity,))]

    def _weight(self, node: NodeProto, index: int) -> Weight | None:
        """An input of a node as a weight; a constant where the operator takes none but weights counts as one."""
        x = node.input[index]
        if x in self.arrays and index in WEIGHT_INPUTS.get(node.op_type, ()):
            array = self.arrays[x]
            return Weight(x, array.shape, np_dtype_to_tensor_dtype(array.dtype))
        return self.weights.get(x)

    def _fill(self, node: NodeProto) -> list[Node]:
        """ConstantOfShape without its tensor."""
        if node.op_type != "ConstantOfShape" or node.domain not in STANDARD_DOMAINS:
            return []
        number = numpy_helper.to_array(node.attribute[0].t).flat[0] if node.attribute else np.float32(0)
        dtype = np_dtype_to_tensor_dtype(number.dtype)
        if node.input[0] in self.arrays:
            shape = tuple(self.arrays[node.input[0]].tolist())
            return fill_nodes(self._named(node.output[0]), shape, number, dtype)
        filler = self._fresh()
        sizes = self._operand(node.input[0])
        output = (self._named(node.output[0]),)
        return [*constant_nodes(filler, np.asarray(number)), Node("Expand", (filler, sizes), output)]

    def _plain(self, node: NodeProto) -> list[Node]:
        """A node as it is; the constants and weights it reads stand before it."""
        by_value = VALUE_INPUTS.get(node.op_type, ())
        inputs: list[str] = []
        for index, x in enumerate(node.input):
            weight = self._weight(node, index)
            inputs.append(self._operand(x, index in by_value, weight))
        outputs = [self._named(x) if x else self._fresh() for x in node.output]
        domain = "" if node.domain in STANDARD_DOMAINS else f"{node.domain}."
        while inputs and not inputs[-1]:
            inputs.pop()
        return [Node(domain + node.op_type, tuple(inputs), tuple(outputs), _attributes(node))]

    def _operand(self, x: str, in_full: bool = False, weight: Weight | None = None) -> str:
        """The name of a value in the graph; constants and weights are made anew for each reader."""
        weight = weight or self.weights.get(x)
        if weight is None and x not in self.arrays:
            return self._named(x)
        name = self._fresh()
        if weight is not None:
            self.nodes.append(weight_node(name, weight.shape, weight.dtype, weight.identity))
            self.shapes[name] = weight.shape
        else:
            self.nodes += constant_nodes(name, self.arrays[x], in_full=in_full)
            self.shapes[name] = self.arrays[x].shape
        return name


def _attributes(node: NodeProto) -> Attributes:
    return attributes(**{attribute.name: _attribute_value(node, attribute) for attribute in node.attribute})


def _attribute_value(node: NodeProto, attribute: AttributeProto) -> AttributeValue:
    value = onnx.helper.get_attribute_value(attribute)
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
        raise OnnxModelError(f"{_place(node)}: expected text as attribute {attribute.name}, got bytes.") from e
    kind = AttributeProto.AttributeType.Name(attribute.type).lower()
    raise OnnxModelError(f"{_place(node)}: expected numbers and text as attributes, got a {kind}: {attribute.name}.")


def _place(node: NodeProto) -> str:
    return f"{node.op_type} {node.name or next(iter(node.output), '')!r}"


def _dtype(kind: TypeProto | None) -> int:
    return kind.tensor_type.elem_type if kind is not None else TensorProto.UNDEFINED


def _static_shape(kind: TypeProto) -> Shape | None:
    if not kind.tensor_type.HasField("shape"):
        return None
    sizes = kind.tensor_type.shape.dim
    return tuple([size.dim_value for size in sizes]) if all(size.HasField("dim_value") for size in sizes) else None


def _spell_type(kind: TypeProto) -> str:
    """As ONNX text spells it; ``[]`` for an unknown rank."""
    element = TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
    if not kind.tensor_type.HasField("shape"):
        return f"{element}[]"
    sizes = [str(size.dim_value) if size.HasField("dim_value") else "?" for size in kind.tensor_type.shape.dim]
    return f"{element}[{','.join(sizes)}]" if sizes else element


def _digest(array: Array) -> str:
    return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
