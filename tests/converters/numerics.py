"""Run a graph with explicit weights, so that two graphs of one network can be compared number by number."""

from collections.abc import Mapping
from functools import cache
from zlib import crc32

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from benchmarks.flat_text import LAYERS
from converters.graph import Graph, Node, Shape
from converters.text import IR_VERSION, OPSET, to_model, write

EPSILON = 1e-5  # of ONNX's BatchNormalization

Tensors = tuple[np.ndarray, ...]


def draw_weights(faithful: Graph, seed: int = 0) -> dict[str, Tensors]:
    """Random tensors by weight name: (kernel, bias) of a layer, (scale, shift, mean, variance) of a batch norm.

    A layer without bias gets one of zeros, to which a batch norm that is folded into it can add.
    """
    weights: dict[str, Tensors] = {}
    for node in faithful.nodes:
        for name in node.weights:
            rng = np.random.default_rng([seed, crc32(name.encode())])
            weights[name] = _tensors(node, node.attribute("weight_shape"), rng)
    return weights


def _tensors(node: Node, shape: Shape, rng: np.random.Generator) -> Tensors:
    if node.op_type == "nn.BatchNormalization":
        scale, variance = rng.uniform(0.5, 1.5, (2, *shape))
        shift, mean = rng.normal(0, 0.3, (2, *shape))
        return scale, shift, mean, variance
    kernel = rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape)
    return kernel, rng.normal(0, 0.3, shape[0]) * node.op_type.endswith("Bias")


def weights_of_model(graph: Graph, arrays: Mapping[str, np.ndarray]) -> dict[str, Tensors]:
    """The same for a graph that was read from a model, of the model's arrays by name."""
    weights: dict[str, Tensors] = {}
    for node in graph.nodes:
        for index, identity in enumerate(node.weights):
            own = [arrays[name] for name in identity.split(",")]
            is_layer = node.op_type in LAYERS and not index  # what else it owns are batch norms
            weights[identity] = _kernel_and_numbers(node, own) if is_layer else tuple(own)
    return weights


def _kernel_and_numbers(node: Node, own: list[np.ndarray]) -> Tensors:
    shape = node.attribute("weight_shape")
    kernel = own[0] if own[0].shape == shape else own[0].T
    assert kernel.shape == shape, f"{node}: expected a kernel of that shape, got {own[0].shape}"
    bias = own[1].ravel() if len(own) > 1 else np.zeros(1)
    return kernel, np.broadcast_to(bias, shape[:1])


def run(graph: Graph, weights: dict[str, Tensors], seed: int = 0) -> list[np.ndarray]:
    """The outputs of a graph for a random input, in ONNX Runtime without its own rewriting."""
    return run_model(to_weighted_model(graph, weights), seed)


def run_model(model: onnx.ModelProto, seed: int = 0) -> list[np.ndarray]:
    """The same of a model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    feed = {x.name: rng.standard_normal(x.shape, dtype=np.float32) for x in session.get_inputs()}
    return session.run(None, feed)


def relative_error(actual: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference, in units of the largest expected number of its output."""
    errors = [
        np.abs(a - b).max() / max(np.abs(b).max(), 1e-6) if a.shape == b.shape else np.inf
        for a, b in zip(actual, expected, strict=True)
    ]
    return float(max(errors))


def to_weighted_model(graph: Graph, weights: dict[str, Tensors]) -> onnx.ModelProto:
    """A model whose layers are standard operators with weights as initialisers."""
    tensors: dict[str, np.ndarray] = {}
    nodes = [part for node in graph.nodes for part in _to_onnx(node, weights, tensors)]
    results = {f"result{index}": x for index, x in enumerate(graph.outputs)}  # one value may be several outputs
    nodes += [helper.make_node("Identity", [x], [result]) for result, x in results.items()]
    body = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, graph.shapes[x]) for x in graph.inputs],
        [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, graph.shapes[y]) for x, y in results.items()],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in tensors.items()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("nn", 1)]
    return helper.make_model(body, opset_imports=opsets, ir_version=IR_VERSION, functions=_prelude_functions())


def _to_onnx(node: Node, weights: dict[str, Tensors], tensors: dict[str, np.ndarray]) -> list[onnx.NodeProto]:
    attributes = dict(node.attributes)
    domain, _, op_type = node.op_type.rpartition(".")
    owned: Tensors = ()
    if node.op_type in LAYERS:
        domain, op_type = "", LAYERS[node.op_type]
        kernel, bias = _kernel_and_bias(node, weights)
        owned = (kernel, bias) if node.op_type.endswith("Bias") else (kernel,)
    elif node.weights:
        domain, op_type, owned = "", "Identity" if op_type == "Weight" else op_type, weights[node.weights[0]]
    if owned:
        del attributes["weight_shape"]
    names = [f"{node.outputs[0]}.tensor{index}" for index in range(len(owned))]
    tensors.update(zip(names, owned, strict=True))
    if op_type == "Gemm":  # which takes matrices alone
        tensors[names[0]] = owned[0].T
        product = node.outputs[0] if len(owned) == 1 else f"{node.outputs[0]}.product"
        parts = [helper.make_node("MatMul", [*node.inputs, names[0]], [product])]
        return parts + [helper.make_node("Add", [product, bias], node.outputs) for bias in names[1:]]
    return [helper.make_node(op_type, [*node.inputs, *names], node.outputs, domain=domain, **attributes)]


def _kernel_and_bias(node: Node, weights: dict[str, Tensors]) -> tuple[np.ndarray, np.ndarray]:
    """Of a layer and the batch norms that were folded into it."""
    kernel, bias = weights[node.weights[0]]
    for name in node.weights[1:]:
        scale, shift, mean, variance = weights[name]
        factor = scale / np.sqrt(variance + EPSILON)
        kernel = kernel * factor.reshape(-1, *[1] * (kernel.ndim - 1))
        bias = (bias - mean) * factor + shift
    return kernel, bias


@cache
def _prelude_functions() -> list[onnx.FunctionProto]:
    return list(to_model(write(Graph(("x",), ("x",), (), {"x": (1,)}))).functions)
