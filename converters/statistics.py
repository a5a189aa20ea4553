"""What a network costs: parameters, multiply-accumulates and sizes, counted from its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from converters.constants import FLOATS
from converters.convert import to_canonical_graph
from converters.graph import Graph, Node, Shape, depth_of
from converters.models.onnx_layers import INDICES, QUANTISATION, union

CONVOLUTIONS = frozenset({"nn.Conv", "nn.ConvBias"})
LINEARS = frozenset({"nn.Linear", "nn.LinearBias"})
NORMS = frozenset({"nn.BatchNormalization", "nn.LayerNormalization"})
BIASED = frozenset({"nn.ConvBias", "nn.LinearBias"})
PLAIN_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})  # that no function of ours says: transposed, half precision
PRODUCTS = frozenset({"Einsum", "Gemm", "MatMul"})
QUANTISERS = frozenset({"DequantizeLinear", "QuantizeLinear"})
VIEWS = frozenset({"Reshape", "Transpose", "nn.Reshape"})
EMBEDDINGS = frozenset({"EmbedLayerNormalization"})  # of other domains, that read weights and multiply nothing
QUANTISED_BIASES: Mapping[str, Sequence[int]] = {"DequantizeLinear": (0,), "QLinearConv": (8,)}  # of 32 bits


@dataclass(frozen=True)
class Statistics:
    """Counts of one network, for its input: one of a batch of 1, unless a model says otherwise.

    Attributes:
        params: trainable numbers of the faithful graph: convolutions, linear layers, weight and bias of norms, and
            weights that other operators read, but arrays of indices; no running statistics, and no scales and zero
            points of quantised weights. In a model, a weight that is used in two ways, such as an embedding that is
            also the last layer, counts once, and of weights that are computed those count that they are computed of.
        macs: multiply-accumulates of the faithful graph's convolutions, linear layers and other products with a weight,
            on either side, which may be stored as integers (QDQ); no biases, batch norms, pooling, activations or
            products of activations, and none of quantised or recurrent operators.
        convs: convolutions of the faithful graph.
        live_macs: the same of the canonical graph, from which dead branches are gone.
        live_convs: convolutions of the canonical graph.
        nodes: operators of the canonical graph, repeated blocks written out.
        depth: operators on its longest path.
        activations: elements of all convolutions' outputs in the canonical graph.
        largest_activation: elements of the largest output of any of its operators, as far as shapes are known.
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
    """Count a graph as ``to_graph`` gives it, and the canonical graph made of it, if that is not given.

    Raises:
        ValueError: a layer behind an operator of unknown shape, or an operator of another domain that has weights.

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
        params=_params(faithful),
        macs=_macs(faithful),
        convs=len(_convolutions(faithful)),
        live_macs=_macs(live),
        live_convs=len(_convolutions(live)),
        nodes=len(live.nodes),
        depth=depth_of(live.nodes),
        activations=sum(_output_size(live, node) for node in _convolutions(live)),
        largest_activation=max((prod(live.shapes[x]) for x in _outputs(live) if x in live.shapes), default=0),
    )


def _outputs(graph: Graph) -> list[str]:
    """What operators make: all values but weights."""
    return [output for node in graph.nodes if node.op_type != "nn.Weight" for output in node.outputs]


def _convolutions(graph: Graph) -> list[Node]:
    owned = _weights(graph)
    return [
        node
        for node in graph.nodes
        if node.op_type in CONVOLUTIONS or (node.op_type in PLAIN_CONVOLUTIONS and node.inputs[1] in owned)
    ]


def _weights(graph: Graph) -> dict[str, Shape]:
    """Shapes by name of the weights that plain operators read, those stored as integers and views of these included."""
    shapes: dict[str, Shape] = {}
    quantised: set[str] = set()
    for node in graph.nodes:
        if node.op_type == "nn.Weight":
            shapes[node.outputs[0]] = _weight_shape(node)
        elif node.op_type in QUANTISERS and node.inputs[0] in shapes:
            shapes[node.outputs[0]] = shapes[node.inputs[0]]
            quantised.add(node.outputs[0])
        elif node.op_type in VIEWS and node.inputs[0] in quantised and node.outputs[0] in graph.shapes:
            shapes[node.outputs[0]] = graph.shapes[node.outputs[0]]
            quantised.add(node.outputs[0])
    return shapes


def _params(graph: Graph) -> int:
    """Count the parameters of a graph.

    Layers that own the same tensors count once, and so do arrays that the weights of several are made of.
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

    Every element of an output takes one weight row: input channels of a group, times kernel.
    """
    owned = _weights(graph)
    _refuse_unknown(graph, owned)
    in_layers = sum(
        _output_size(graph, node) * prod(_weight_shape(node)[1:])
        for node in graph.nodes
        if node.op_type in CONVOLUTIONS | LINEARS
    )
    plain = sum(
        _plain_convolution_macs(graph, node, owned[node.inputs[1]])
        for node in graph.nodes
        if node.op_type in PLAIN_CONVOLUTIONS and node.inputs[1] in owned
    )
    products = sum(
        _product_macs(graph, node)
        for node in graph.nodes
        if node.op_type in PRODUCTS and not owned.keys().isdisjoint(node.inputs[:2])
    )
    return in_layers + plain + products


def _refuse_unknown(graph: Graph, owned: Mapping[str, Shape]) -> None:
    """Refuse operators of other domains that would count as nothing, apart from those that read integers."""
    integers = {node.outputs[0] for node in graph.nodes if node.op_type == "nn.Weight" and _is_of_integers(node)}
    matrices = {x for x, shape in owned.items() if len(shape) > 1} - integers
    for node in graph.nodes:
        domain, _, name = node.op_type.rpartition(".")
        if domain not in ("", "nn") and name not in EMBEDDINGS and not matrices.isdisjoint(node.inputs):
            raise ValueError(
                f"statistics: expected layers whose multiply-accumulates are known, got {node.op_type} with weights. "
                "Use a file of standard operators, such as the one before ONNX Runtime optimised it."
            )


def _is_of_integers(node: Node) -> bool:
    return node.attribute("dtype") not in (None, *FLOATS)


def _plain_convolution_macs(graph: Graph, node: Node, weight_shape: Shape) -> int:
    """Multiply-accumulates of a plain convolution: every element of its output takes one weight row.

    Of a transposed one, every element of its input takes the outputs of a group, times kernel.
    """
    x = node.inputs[0] if node.op_type == "ConvTranspose" else node.outputs[0]
    return _size(graph, x, node) * prod(weight_shape[1:])


def _product_macs(graph: Graph, node: Node) -> int:
    """Every element of an output takes a row of the first operand."""
    if node.op_type == "Einsum":
        return _einsum_macs(graph, node)
    first = _shape(graph, node.inputs[0], node)
    return _output_size(graph, node) * first[-2 if node.attribute("transA") else -1]


def _einsum_macs(graph: Graph, node: Node) -> int:
    """Every element of an output takes the axes that its equation sums over."""
    terms, arrow, kept = str(node.attribute("equation")).replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, x in zip(terms.split(","), node.inputs, strict=True):
        before, _, after = term.partition("...")
        shape = _shape(graph, x, node)
        sizes |= zip(before, shape, strict=False)
        sizes |= zip(after[::-1], shape[::-1], strict=False)
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
    return tuple(int(size) for size in shape)
