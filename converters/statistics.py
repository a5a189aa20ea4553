"""Counts the parameters, multiply-accumulates (MACs) and sizes of a network from its graphs.

The faithful graph is the network as its reference builds it; the canonical graph has only what outputs depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from converters.convert import to_canonical_graph
from converters.graph import Graph, Node, Shape, depth_of, union
from converters.models.onnx_layers import INDICES
from converters.models.onnx_positions import QUANTISATION, QUANTISED_BIASES

CONVOLUTIONS = frozenset({"nn.Conv", "nn.ConvBias"})
LAYERS = CONVOLUTIONS | {"nn.Linear", "nn.LinearBias"}
NORMS = frozenset({"nn.BatchNormalization", "nn.LayerNormalization"})
BIASED = frozenset({"nn.ConvBias", "nn.LinearBias"})
# ONNX operators, and the positions of inputs that may be weights; where no nn function fits, as in half precision.
PLAIN_CONVOLUTIONS = dict.fromkeys(("Conv", "ConvInteger", "ConvTranspose", "DeformConv"), 1) | {"QLinearConv": 3}
PRODUCTS = dict.fromkeys(("Gemm", "MatMul", "MatMulInteger"), (0, 1)) | {"QLinearMatMul": (0, 3)}
QUANTISED_GEMM = "com.microsoft.QGemm"  # in files that ONNX Runtime has quantised
RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
QUANTISERS = frozenset({"DequantizeLinear", "QuantizeLinear"})
VIEWS = frozenset({"Reshape", "Transpose", "nn.Reshape"})
# Operators of other domains that may read weights, but have no MACs.
WITHOUT_MACS = frozenset({"EmbedLayerNormalization", "GatherBlockQuantized", "QLinearAdd", "QLinearMul"})


@dataclass(frozen=True)
class Statistics:
    """Counts of one network at its input shape, which has batch 1 unless a model fixes another batch size.

    Attributes:
        params: trainable numbers of the faithful graph: those of convolutions and linear layers, weight and bias of
            norms, and weights that other operators read. Not counted: arrays of indices, running statistics, scales
            and zero points of quantised weights. In an ONNX model, a weight that is used twice, such as an embedding
            that is also the last layer, counts once; of weights computed from other arrays, those arrays count.
        macs: multiply-accumulates of the faithful graph's convolutions, linear layers, recurrent layers and other
            products of which an operand is a weight, which may be stored as integers. Not counted: biases, batch
            norms, pooling, activations, products of activations, and what recurrent layers compute element by element.
        convs: convolutions of the faithful graph.
        live_macs: multiply-accumulates of the canonical graph, which has no dead branches.
        live_convs: convolutions of the canonical graph.
        nodes: operators of the canonical graph, repeated blocks written out.
        depth: operators on the longest path of the canonical graph.
        activations: elements of all convolutions' outputs in the canonical graph.
        largest_activation: elements of the largest operator output in the canonical graph, among known shapes.
    """

    params: int
    macs: int
    convs: int
    live_macs: int
    live_convs: int
    nodes: int
    depth: int
    activations: int
    largest_activation: int


def statistics(faithful: Graph, canonical: Graph | None = None) -> Statistics:
    """Count the statistics of a faithful graph; its canonical graph is computed unless given.

    Raises:
        ValueError: the shape of a layer is unknown, or an operator of another domain reads weights.

    Example:
        >>> from converters import to_graph
        >>> from spaces import get_space
        >>> space = get_space("nasbench201")
        >>> counts = statistics(to_graph(space, space.decode((3, 0, 0, 0, 0, 0))))  # nothing reaches the output
        >>> counts.params, counts.convs, counts.live_macs, counts.live_convs
        (316346, 22, 640, 0)

    Source:
        activations: Radosavovic et al. 2020, "Designing Network Design Spaces": "the size of the output tensors of
        all conv layers", as pycls counts.
    """
    live = canonical or to_canonical_graph(faithful)
    return Statistics(
        **{name: count(faithful) for name, count in _OF_FAITHFUL.items()},
        **{name: count(live) for name, count in _OF_CANONICAL.items()},
    )


def some_statistics(faithful: Graph, names: Sequence[str]) -> tuple[int, ...]:
    """Count the named ones of ``Statistics``, without a canonical graph if all are counted from the faithful one.

    Raises:
        ValueError: as for ``statistics``.
    """
    if _OF_FAITHFUL.keys() >= set(names):
        return tuple(_OF_FAITHFUL[name](faithful) for name in names)
    counts = statistics(faithful)
    return tuple(getattr(counts, name) for name in names)


def _activations(graph: Graph) -> int:
    return sum(_output_size(graph, node) for node in _convolutions(graph))


def _largest_activation(graph: Graph) -> int:
    outputs = [output for node in graph.nodes if node.op_type != "nn.Weight" for output in node.outputs]
    return max((prod(graph.shapes[output]) for output in outputs if output in graph.shapes), default=0)


def _convolutions(graph: Graph) -> list[Node]:
    owned = _weights(graph)
    return [node for node in graph.nodes if node.op_type in CONVOLUTIONS or _filters(node) in owned]


def _filters(node: Node) -> str:
    """Return the value that a convolution reads as its weight; "" for other operators and layers that own theirs."""
    return node.inputs[PLAIN_CONVOLUTIONS[node.op_type]] if node.op_type in PLAIN_CONVOLUTIONS else ""


def _weights(graph: Graph) -> dict[str, Shape]:
    """Return the shapes of weights that operators read as inputs, by name; weights stored as integers are included."""
    shapes: dict[str, Shape] = {}
    quantised: set[str] = set()
    for node in graph.nodes:
        if node.op_type == "nn.Weight":
            shapes[node.outputs[0]] = _weight_shape(node)
        elif node.op_type in QUANTISERS and node.inputs[0] in shapes:
            shapes[node.outputs[0]] = shapes[node.inputs[0]]
            quantised.add(node.outputs[0])
        elif _is_made_of(quantised, node) and node.outputs[0] in graph.shapes:
            shapes[node.outputs[0]] = graph.shapes[node.outputs[0]]
            quantised.add(node.outputs[0])
    return shapes


def _is_made_of(weights: set[str], node: Node) -> bool:
    """Return whether a node only turns a weight, or joins several, as torch's exporter does for recurrent layers."""
    if node.op_type == "Concat":
        return weights.issuperset(node.inputs)
    return node.op_type in VIEWS and node.inputs[0] in weights


def _params(graph: Graph) -> int:
    """Count the parameters of a graph.

    Layers that own the same tensors count once, and so does an array from which the weights of several are computed.
    """
    scales = {x for node in graph.nodes for x in _read_at(node, QUANTISATION)}
    own = {node.weights: node for node in graph.nodes if node.weights and scales.isdisjoint(node.outputs)}
    layers = {names: node for names, node in own.items() if node.attribute("dtype") not in INDICES}
    of_arrays = union(graph.params.get(name, {}) for names in layers for name in names)
    others = [node for names, node in layers.items() if not graph.params.keys() >= set(names)]
    quantised = {x for node in graph.nodes for x in _read_at(node, QUANTISED_BIASES)}
    others += [node for names, node in own.items() if names not in layers and not quantised.isdisjoint(node.outputs)]
    return sum(of_arrays.values()) + sum(_layer_params(node) for node in others)


def _read_at(node: Node, positions: Mapping[str, Sequence[int]]) -> list[str]:
    name = node.op_type.rpartition(".")[2]
    return [node.inputs[index] for index in positions.get(name, ()) if index < len(node.inputs)]


def _layer_params(node: Node) -> int:
    shape = _weight_shape(node)
    if node.op_type in NORMS:
        return 2 * prod(shape)
    return prod(shape) + (shape[0] if node.op_type in BIASED else 0)


def _macs(graph: Graph) -> int:
    """Count the multiply-accumulates of a graph.

    Each output element of a layer costs as many as one row of the weight has elements: for a convolution, the input
    channels of a group times the kernel size.
    """
    owned = _weights(graph)
    _refuse_unknown(graph, owned)
    return sum(_node_macs(graph, node, owned) for node in graph.nodes)


def _node_macs(graph: Graph, node: Node, owned: Mapping[str, Shape]) -> int:
    if node.op_type in LAYERS:
        return _output_size(graph, node) * prod(_weight_shape(node)[1:])
    if (filters := _filters(node)) in owned:
        return _plain_convolution_macs(graph, node, owned[filters])
    if not owned.keys().isdisjoint(_factors(node)):
        return _product_macs(graph, node)
    if node.op_type == QUANTISED_GEMM:
        return _quantised_gemm_macs(graph, node, owned)
    if node.op_type in RECURRENT:
        steps = prod(_shape(graph, node.inputs[0], node)[:2])
        return steps * sum(prod(owned[x]) for x in node.inputs[1:3] if x in owned)
    return 0


def _refuse_unknown(graph: Graph, owned: Mapping[str, Shape]) -> None:
    """Raise an error for operators of other domains that read weights, since their cost is unknown."""
    indices = {x for node in graph.nodes if node.attribute("dtype") in INDICES for x in node.outputs}
    matrices = {x for x, shape in owned.items() if len(shape) > 1} - indices
    for node in graph.nodes:
        domain, _, name = node.op_type.rpartition(".")
        is_known = domain in ("", "nn") or node.op_type == QUANTISED_GEMM or name in WITHOUT_MACS
        if not is_known and not matrices.isdisjoint(node.inputs):
            raise ValueError(
                f"statistics: expected layers whose multiply-accumulates are known, got {node.op_type} with weights. "
                "Use a file of standard operators, such as the one before ONNX Runtime optimised it."
            )


def _plain_convolution_macs(graph: Graph, node: Node, weight_shape: Shape) -> int:
    """Count the multiply-accumulates of a convolution that reads its weight as an input.

    Each output element costs as many as a row of the weight has elements. If the convolution is transposed, each input
    element costs the output channels of a group times the kernel size.
    """
    x = node.inputs[0] if node.op_type == "ConvTranspose" else node.outputs[0]
    return _size(graph, x, node) * prod(weight_shape[1:])


def _factors(node: Node) -> Sequence[str]:
    """Return the operands that a node multiplies; an Einsum has any number, and of a single one it is no product."""
    if node.op_type == "Einsum":
        return node.inputs if len(node.inputs) > 1 else ()
    return [node.inputs[index] for index in PRODUCTS.get(node.op_type, ())]


def _product_macs(graph: Graph, node: Node) -> int:
    """Count the multiply-accumulates of a product: each output element costs the length of the summed axis."""
    if node.op_type == "Einsum":
        return _einsum_macs(graph, node)
    first = _shape(graph, node.inputs[0], node)
    return _output_size(graph, node) * first[-2 if node.attribute("transA") else -1]


def _quantised_gemm_macs(graph: Graph, node: Node, owned: Mapping[str, Shape]) -> int:
    """Count the multiply-accumulates of a quantised Gemm: each row costs the elements of the second matrix."""
    first, second = node.inputs[0], node.inputs[3]
    if owned.keys().isdisjoint((first, second)):
        return 0
    rows = _shape(graph, first, node)[-1 if node.attribute("transA") else 0]
    return rows * _size(graph, second, node)


def _einsum_macs(graph: Graph, node: Node) -> int:
    """Count the multiply-accumulates of an Einsum: output elements times the sizes of the axes summed over."""
    terms, arrow, kept = str(node.attribute("equation")).replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, x in zip(terms.split(","), node.inputs, strict=True):
        before, _, after = term.partition("...")
        shape = _shape(graph, x, node)
        for letter, size in (*zip(before, shape, strict=False), *zip(after[::-1], shape[::-1], strict=False)):
            sizes[letter] = max(size, sizes.get(letter, 1))  # an axis of size 1 is broadcast
    implied = {letter for letter in sizes if terms.count(letter) == 1}
    summed = sizes.keys() - (set(kept) if arrow else implied)
    return _output_size(graph, node) * prod(sizes[letter] for letter in summed)


def _output_size(graph: Graph, node: Node) -> int:
    return _size(graph, node.outputs[0], node)


def _size(graph: Graph, x: str, node: Node) -> int:
    return prod(_shape(graph, x, node))


def _shape(graph: Graph, x: str, node: Node) -> Shape:
    shape = graph.shapes.get(x)
    if shape is None:
        raise ValueError(f"statistics: expected layers of known shape, got {node.op_type} behind an unknown operator.")
    return shape


def _weight_shape(node: Node) -> Shape:
    shape = node.attribute("weight_shape")
    assert isinstance(shape, tuple), f"layer {node} has no weight shape"
    return cast(Shape, shape)


_OF_FAITHFUL: dict[str, Callable[[Graph], int]] = {
    "params": _params,
    "macs": _macs,
    "convs": lambda graph: len(_convolutions(graph)),
}
_OF_CANONICAL: dict[str, Callable[[Graph], int]] = {
    "live_macs": _macs,
    "live_convs": _OF_FAITHFUL["convs"],
    "nodes": lambda graph: len(graph.nodes),
    "depth": lambda graph: depth_of(graph.nodes),
    "activations": _activations,
    "largest_activation": _largest_activation,
}
