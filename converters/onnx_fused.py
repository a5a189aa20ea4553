"""Operators that ONNX Runtime fuses, in the standard operators that they were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.helper import get_attribute_value, make_node, tensor_dtype_to_np_dtype

RUNTIME_DOMAIN = "com.microsoft"
# Of an activation, the attributes that its parameters are.
ACTIVATIONS = {"HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",), "Relu": (), "Sigmoid": (), "Tanh": ()}
OF_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta", "activation_gamma")
OF_PRODUCT = ("alpha", "transA", "transB", "transBatchA", "transBatchB")


def without_fusions(model: ModelProto) -> None:
    """Replace what ``onnxruntime`` writes as ``optimized_model_filepath`` up to the level "extended".

    Convolutions, matrix products and what followed them: a sum, an activation, a transposition, a factor. Others, such
    as attention, stay as they are.
    """
    writer = _Writer(model)
    nodes = [part for node in model.graph.node for part in writer.parts(node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


class _Writer:
    def __init__(self, model: ModelProto) -> None:
        self._graph = model.graph
        self._names = {x for node in model.graph.node for x in (*node.input, *node.output)}
        self._numbers = count()
        self._types = {value.name: value.type.tensor_type for value in model.graph.input}  # weights are among them

    def parts(self, node: NodeProto) -> Sequence[NodeProto]:
        """The standard operators that a node stands for; itself if it is none that is known."""
        write: Callable[[NodeProto, dict[str, Any]], Iterator[NodeProto]] | None = {
            "FusedConv": self._convolution,
            "FusedGemm": self._gemm,
            "FusedMatMul": self._product,
        }.get(node.op_type)
        if write is None or node.domain != RUNTIME_DOMAIN:
            return [node]
        given = {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}
        return list(write(node, given)) or [node]

    def _convolution(self, node: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
        *layer, added = [*node.input, "", ""][:4]
        yield from self._activated(node, given, "Conv", layer, added)

    def _gemm(self, node: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
        yield from self._activated(node, given, "Gemm", node.input)

    def _activated(
        self, node: NodeProto, given: dict[str, Any], op_type: str, inputs: Sequence[str], added: str = ""
    ) -> Iterator[NodeProto]:
        """A layer, a sum with another value if one is named, and an activation."""
        kind = given.get("activation", b"").decode()
        numbers = given.get("activation_params", [given.get(name, 0.0) for name in OF_ACTIVATION[2:]])
        if kind != "Clip" and kind not in ACTIVATIONS:
            return
        own = {name: value for name, value in given.items() if name not in OF_ACTIVATION}
        yield make_node(op_type, _trimmed(inputs), [x := self._fresh()], node.name, **own)
        if added:
            yield make_node("Add", [x, added], [summed := self._fresh()])
            x = summed
        if kind == "Clip":
            dtype = self._types[node.input[1]].elem_type if node.input[1] in self._types else TensorProto.FLOAT
            ends = [self._number(end, dtype) for end in numbers[:2]]
            yield make_node("Clip", [x, *ends], node.output)
        else:
            named = dict(zip(ACTIVATIONS[kind], numbers, strict=False))
            yield make_node(kind, [x], node.output, **named)

    def _product(self, node: NodeProto, given: dict[str, Any]) -> Iterator[NodeProto]:
        alpha, *flags = [given.get(name, 1.0 if name == "alpha" else 0) for name in OF_PRODUCT]
        turned = [bool(flag) for flag in flags[:2]]
        if any(flags[2:]):
            return
        output = node.output[0] if alpha == 1 else self._fresh()
        if any(turned):
            axes = [term[::-1] if is_turned else term for term, is_turned in zip(("ij", "jk"), turned, strict=True)]
            terms = [term if self._is_matrix(x) else f"...{term}" for term, x in zip(axes, node.input, strict=True)]
            yield make_node("Einsum", node.input, [output], equation=f"{','.join(terms)}->...ik")
        else:
            yield make_node("MatMul", node.input, [output], node.name)
        if alpha != 1:
            yield make_node("Mul", [output, self._number(alpha, TensorProto.FLOAT)], node.output)

    def _is_matrix(self, x: str) -> bool:
        return x in self._types and len(self._types[x].shape.dim) == 2

    def _number(self, number: float, dtype: int) -> str:
        """The name of a constant."""
        array = np.array(number, tensor_dtype_to_np_dtype(dtype))
        self._graph.initializer.append(numpy_helper.from_array(array, name := self._fresh()))
        return name

    def _fresh(self) -> str:
        name = next(name for number in self._numbers if (name := f"fused{number}") not in self._names)
        self._names.add(name)
        return name


def _trimmed(inputs: Sequence[str]) -> list[str]:
    """Without optional ones that are left out at the end."""
    kept = list(inputs)
    while kept and not kept[-1]:
        kept.pop()
    return kept
