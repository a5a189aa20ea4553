"""Build ONNX graphs of our layers, with the fused operators of ONNX Runtime. N texts, L tokens, D width."""

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
LARGEST_WEIGHT = 63  # of int8: CPUs without VNNI add two products in 16 bits, which would overflow with 127

FLOAT, DOUBLE, INT32, INT64 = (
    int(kind) for kind in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
)

Signature = dict[str, tuple[int, list[str | int]]]  # name: element type and shape


class OnnxBuilder:
    """A collector of nodes; methods take and return names of values, and equal constants are stored once.

    Args:
        int8: quantize weight matrices to 8 bits with one scale per column; activations are quantized dynamically.
    """

    def __init__(self, *, int8: bool) -> None:
        self._int8 = int8
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def node(self, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return its output."""
        return self.nodes(op_type, *inputs, outputs=1, domain=domain, **attributes)[0]

    def nodes(self, op_type: str, *inputs: str, outputs: int, domain: str = "", **attributes: Any) -> list[str]:
        """Add a node and return its outputs."""
        names = [f"v{len(self._nodes)}_{index}" for index in range(outputs)]
        self._nodes.append(helper.make_node(op_type, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant, unless there is an equal one, and return its name."""
        value = np.ascontiguousarray(value)
        name = f"c{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(value, name)
        return name

    def ints(self, *values: int) -> str:
        """Add a constant vector, such as the axes of an operator."""
        return self.constant(np.array(values, dtype=np.int64))

    def weight(self, tensor: Tensor) -> str:
        """Add a parameter or buffer as a constant."""
        return self.constant(tensor.detach().cpu().float().numpy())

    def linear(self, x: str, layer: nn.Linear) -> str:
        """Map (..., D) to (..., D')."""
        matrix = layer.weight.detach().cpu().float().numpy().T
        if not self._int8:
            return self.node("MatMul", x, self.constant(matrix))
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12) / LARGEST_WEIGHT
        rounded = self.constant(np.rint(matrix / scale).astype(np.int8))
        return self.node("DynamicQuantizeMatMul", x, rounded, self.constant(scale), domain=FUSED)

    def rms_norm(self, x: str, norm: nn.RMSNorm) -> str:
        """Apply root mean square normalisation to the last axis."""
        return self.node("SimplifiedLayerNormalization", x, self.weight(norm.weight), axis=-1, epsilon=_epsilon(norm))

    def add_and_norm(self, x: str, change: str, norm: nn.RMSNorm) -> tuple[str, str]:
        """Return ``norm(x + change)`` and ``x + change``."""
        outputs = self.nodes(
            "SkipSimplifiedLayerNormalization",
            x,
            change,
            self.weight(norm.weight),
            outputs=4,
            domain=FUSED,
            epsilon=_epsilon(norm),
        )
        self._nodes[-1].output[1:3] = ["", ""]  # the operator does not compute them on a CPU
        return outputs[0], outputs[3]

    def attention(self, q: str, k: str, v: str, num_heads: int, mask: str = "") -> str:
        """Attend from (N, L', D) queries to keys and values (N, L, D) or (N, H, L, D / H) under a mask (N, L)."""
        return self.node("MultiHeadAttention", q, k, v, "", mask, domain=FUSED, num_heads=num_heads)

    def split(self, x: str, parts: int, axis: int = -1) -> list[str]:
        """Split into equal parts along an axis."""
        return self.nodes("Split", x, outputs=parts, axis=axis, num_outputs=parts)

    def gated_mlp(self, normed: str, mlp: GatedMLP) -> str:
        """Map normalised (..., D) to (..., D)."""
        gate, value = self.split(self.linear(normed, mlp.up), 2)
        return self.linear(self.node("Mul", self.node("QuickGelu", gate, domain=FUSED, alpha=1.0), value), mlp.down)

    def build(self, inputs: Signature, outputs: dict[str, tuple[str, int]]) -> bytes:
        """Build the model.

        Args:
            inputs: element types and shapes by name.
            outputs: values and element types by name.
        """
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
