"""Builds ONNX graphs of our layers, with the fused operators of ONNX Runtime. N texts, L tokens, D width."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from nasrlm.model.layers import GatedMLP

OPSET = 20
IR_VERSION = 10
FUSED = "com.microsoft"  # ONNX Runtime's own operators
LARGEST_WEIGHT = 63  # processors without VNNI add two products in 16 bits, which overflow with weights of all 8 bits

FLOAT, DOUBLE, INT32, INT64 = (
    int(kind) for kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
)

Signature = dict[str, tuple[int, list[str | int]]]  # name: element type and shape


class OnnxBuilder:
    """Collects nodes; values are their names, and weights are stored once.

    Args:
        int8: matrices of weights in whole numbers, a scale each column; what they are multiplied with is rounded to
            8 bits as it comes.
    """

    def __init__(self, *, int8: bool = False) -> None:
        self._int8 = int8
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def node(self, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The output of a new node."""
        return self.nodes(op_type, *inputs, outputs=1, domain=domain, **attributes)[0]

    def nodes(self, op_type: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any) -> list[str]:
        """The outputs of a new node."""
        names = [f"v{len(self._nodes)}_{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        """A constant of this content; equal ones are one."""
        value = np.ascontiguousarray(value)
        name = f"c{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def ints(self, *values: int) -> str:
        """A constant vector, such as the axes of an operator."""
        return self.constant(np.array(values, dtype=np.int64))

    def weight(self, tensor: Tensor) -> str:
        """A constant with the numbers of a parameter or buffer."""
        return self.constant(tensor.detach().cpu().float().numpy())

    def linear(self, x: str, layer: nn.Linear) -> str:
        """(..., D) to (..., D')."""
        matrix = layer.weight.detach().cpu().float().numpy().T
        if not self._int8:
            return self.node("MatMul", x, self.constant(matrix))
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / LARGEST_WEIGHT
        rounded = self.constant(np.rint(matrix / scale).astype(np.int8))
        return self.node("DynamicQuantizeMatMul", x, rounded, self.constant(scale), domain=FUSED)

    def rms_norm(self, x: str, norm: nn.RMSNorm) -> str:
        """Root mean square normalisation of the last axis."""
        return self.node("SimplifiedLayerNormalization", x, self.weight(norm.weight), axis=-1, epsilon=_epsilon(norm))

    def add_and_norm(self, x: str, change: str, norm: nn.RMSNorm) -> tuple[str, str]:
        """``norm(x + change)`` and ``x + change``."""
        outputs = self.nodes(
            "SkipSimplifiedLayerNormalization",
            x,
            change,
            self.weight(norm.weight),
            outputs=4,
            domain=FUSED,
            epsilon=_epsilon(norm),
        )
        self._nodes[-1].output[1:3] = ["", ""]  # which the operator does not compute on a CPU
        return outputs[0], outputs[3]

    def attention(self, q: str, k: str, v: str, num_heads: int, mask: str = "") -> str:
        """(N, L', D) of queries (N, L', D), keys and values (N, L, D) or (N, H, L, D / H), and a mask (N, L)."""
        return self.node("MultiHeadAttention", q, k, v, "", mask, domain=FUSED, num_heads=num_heads)

    def split(self, x: str, parts: int, axis: int = -1) -> list[str]:
        """Equal parts along an axis."""
        return self.nodes("Split", x, outputs=parts, axis=axis, num_outputs=parts)

    def gated_mlp(self, normed: str, mlp: GatedMLP) -> str:
        """(..., D) to (..., D), after the norm."""
        gate, value = self.split(self.linear(normed, mlp.up), 2)
        return self.linear(self.node("Mul", self.node("QuickGelu", gate, domain=FUSED, alpha=1.0), value), mlp.down)

    def build(self, inputs: Signature, outputs: dict[str, tuple[str, int]]) -> bytes:
        """The model: inputs by name, outputs by name with the values they are and their element types."""
        for name, (value, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self._nodes,
            "nasrlm",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, kind, None) for name, (_, kind) in outputs.items()],
            list(self._constants.values()),
        )
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, 1)]
        return bytes(helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION).SerializeToString())


def _epsilon(norm: nn.RMSNorm) -> float:
    return torch.finfo(torch.float32).eps if norm.eps is None else norm.eps
