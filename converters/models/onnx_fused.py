"""Replaces fused operators of ONNX Runtime by the standard operators that they were made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import onnx.shape_inference
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, numpy_helper
from onnx.helper import make_node, tensor_dtype_to_np_dtype

from converters.models.one_node import attributes_of

RUNTIME_DOMAIN = "com.microsoft"
LAYERS = {"FusedConv": "Conv", "FusedGemm": "Gemm"}
# For each activation, the names of its attributes in the order of ``activation_params``.
ACTIVATIONS = {
    "": (),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
OF_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma")
TURNED = ("transA", "transB")
TURNED_BATCHES = ("transBatchA", "transBatchB")


def without_fusions(model: ModelProto) -> None:
    """Replace, in place, fused operators that ``onnxruntime`` writes at optimisation levels up to "extended".

    These are convolutions and matrix products fused with a sum, an activation, a transposition or a factor. Others,
    such as attention, are kept, and so are products of operands of unknown rank or type.
    """
    if not any(node.domain == RUNTIME_DOMAIN for node in model.graph.node):
        return
    writer = _Writer(model)
    writer.rewrite()
    while any(_is_fused(node, "FusedMatMul") for node in model.graph.node):  # types are inferred past replaced ones
        writer.infer_types()
        if not writer.rewrite():
            break


def _is_fused(node: NodeProto, *op_types: str) -> bool:
    return node.domain == RUNTIME_DOMAIN and node.op_type in op_types


class _Writer:
    def __init__(self, model: ModelProto) -> None:
        self._model, self._graph = model, model.graph
        self._names = {x for node in model.graph.node for x in (*node.input, *node.output)}
        self._names |= {value.name for value in (*model.graph.input, *model.graph.initializer)}
        self._numbers = count()
        self._types: dict[str, TypeProto.Tensor] = {x.name: x.type.tensor_type for x in model.graph.input}

    def infer_types(self) -> None:
        """Infer the types of values, as far as possible with the operators replaced so far."""
        graph = onnx.shape_inference.infer_shapes(self._model).graph
        self._types = {x.name: x.type.tensor_type for x in (*graph.input, *graph.value_info)}

    def rewrite(self) -> bool:
        """Replace the fused operators that can be replaced; return whether there were any."""
        nodes = list(self._graph.node)
        written = [list(self._parts(node)) for node in nodes]
        del self._graph.node[:]
        self._graph.node.extend(part for node, parts in zip(nodes, written, strict=True) for part in (parts or [node]))
        return any(written)

    def _parts(self, node: NodeProto) -> Iterator[NodeProto]:
        """Yield the standard operators that replace a node; none if the node is to be kept."""
        if _is_fused(node, *LAYERS):
            yield from self._layer(node, attributes_of(node))
        elif _is_fused(node, "FusedMatMul"):
            yield from self._product(node, attributes_of(node))

    def _layer(self, node: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
        """Yield the layer, the addition of another value if there is one, and the activation."""
        kind = given.get("activation", b"").decode()
        if kind != "Clip" and kind not in ACTIVATIONS:
            return
        layer, added = list(node.input), ""
        if node.op_type == "FusedConv":
            *layer, added = [*layer, "", ""][:4]
        own = {name: value for name, value in given.items() if name not in OF_ACTIVATION}
        parts = [make_node(LAYERS[node.op_type], layer, [], node.name, **own)]
        if added:
            parts.append(make_node("Add", ["", added], []))
        if kind == "Clip":
            dtype = self._types[node.input[1]].elem_type if node.input[1] in self._types else TensorProto.FLOAT
            parts.append(make_node("Clip", ["", *(self._number(x, dtype) for x in given["activation_params"][:2])], []))
        elif kind:
            parts.append(make_node(kind, [""], [], **_parameters(kind, given)))
        yield from self._chained(parts, node.output[0])

    def _product(self, node: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
        if any(given.get(name, 0) for name in TURNED_BATCHES) or any(x not in self._types for x in node.input):
            return
        operands, parts = list(node.input), list[NodeProto]()
        for index, name in enumerate(TURNED):
            if given.get(name, 0):
                axes = list(range(len(self._types[node.input[index]].shape.dim)))
                if len(axes) < 2:
                    return
                operands[index] = self._fresh()
                perm = [*axes[:-2], axes[-1], axes[-2]]
                parts.append(make_node("Transpose", [node.input[index]], [operands[index]], perm=perm))
        yield from parts
        chained = [make_node("MatMul", operands, [], node.name)]
        if (alpha := given.get("alpha", 1.0)) != 1:
            factor = self._number(alpha, self._types[node.input[0]].elem_type)
            chained.append(make_node("Mul", ["", factor], []))
        yield from self._chained(chained, node.output[0])

    def _chained(self, parts: Sequence[NodeProto], output: str) -> Iterator[NodeProto]:
        """Connect nodes to a chain: the first input of each is the output of the one before."""
        for index, part in enumerate(parts):
            if index:
                part.input[0] = parts[index - 1].output[0]
            part.output.append(self._fresh() if index < len(parts) - 1 else output)
            yield part

    def _number(self, number: float, dtype: int) -> str:
        """Add a constant and return its name."""
        array = np.array(number, tensor_dtype_to_np_dtype(dtype))
        self._graph.initializer.append(numpy_helper.from_array(array, name := self._fresh()))
        return name

    def _fresh(self) -> str:
        name = next(name for number in self._numbers if (name := f"fused{number}") not in self._names)
        self._names.add(name)
        return name


def _parameters(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an activation by name; they may be given as one list or as separate attributes."""
    names = ACTIVATIONS[kind]
    if "activation_params" in given:
        return dict(zip(names, given["activation_params"], strict=False))
    return {name: given[f"activation_{name}"] for name in names if f"activation_{name}" in given}
