"""Say only what the network computes: each pass takes a graph and returns one with the same outputs.

Passes keep value names, so the shapes of what remains stay known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from converters.graph import Graph, Node, Shape
from converters.sums import Terms, expand, flatten_sums

# Operators with f(0) = 0 whatever their attributes.
ZERO_PRESERVING = frozenset(
    ["Relu", "AveragePool", "MaxPool", "GlobalAveragePool", "Flatten", "Reshape", "Transpose", "Slice", "nn.Conv", "nn.Linear"]
)


def simplify(graph: Graph) -> Graph:
    """Every pass of this file, in the order in which each profits from those before."""
    for rewrite in (
        fold_batch_norms,
        propagate_zeros,
        drop_identities,
        merge_equal_values,
        remove_dead_nodes,
        flatten_sums,
    ):
        graph = rewrite(graph)
    return graph


def fold_batch_norms(graph: Graph) -> Graph:
    """A batch norm after a convolution that nothing else reads becomes the convolution's scale and bias."""
    uses = Counter(x for node in graph.nodes for x in node.inputs) + Counter(graph.outputs)
    nodes: list[Node | None] = list(graph.nodes)
    position: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        if node.op_type in ("nn.Conv", "nn.ConvBias") and uses[node.outputs[0]] == 1:
            position[node.outputs[0]] = index
        elif node.op_type == "nn.BatchNormalization" and node.inputs[0] in position:
            at = position.pop(node.inputs[0])
            conv = graph.nodes[at]
            nodes[at] = Node("nn.ConvBias", conv.inputs, node.outputs, conv.attributes, conv.weights + node.weights)
            nodes[index] = None
    return _rebuild(graph, [node for node in nodes if node is not None])


def propagate_zeros(graph: Graph) -> Graph:
    """``x * 0`` and what follows: sums drop zeros, operators with f(0) = 0 pass them on.

    Where something still reads a zero (a convolution with bias makes a constant of it), it reads ``nn.Zeros``,
    one of its own: a constant shared by all blocks would tie them together.
    """
    zero_scalars = {
        node.outputs[0] for node in graph.nodes if node.op_type == "Constant" and node.attribute("value_float") == 0.0
    }
    if not zero_scalars:
        return graph
    zeros: set[str] = set()
    nodes: list[Node] = []
    shapes = dict(graph.shapes)

    def constant(x: str) -> str:
        name = f"{x}.zero{len(nodes)}"
        shapes[name] = shapes[x]
        nodes.append(Node("nn.Zeros", (), (name,), (("shape", shapes[x]),)))
        return name

    for node in graph.nodes:
        if _is_zero(node, zeros, zero_scalars):
            zeros.update(node.outputs)
        elif zeros.isdisjoint(node.inputs):
            nodes.append(node)
        elif node.op_type in ("Sum", "Add"):
            nodes.append(node._replace(op_type="Sum", inputs=tuple([x for x in node.inputs if x not in zeros])))
        else:
            inputs = tuple([constant(x) if x in zeros else x for x in node.inputs])
            nodes.append(node._replace(inputs=inputs))
    outputs = tuple([constant(x) if x in zeros else x for x in graph.outputs])
    return Graph(graph.inputs, outputs, tuple(nodes), shapes)


def drop_identities(graph: Graph) -> Graph:
    """Identity, Dropout at inference and sums of one operand hand their input on."""
    source: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple([source.get(x, x) for x in node.inputs])
        if node.op_type in ("Identity", "Dropout") or (node.op_type == "Sum" and len(inputs) == 1):
            source[node.outputs[0]] = inputs[0]
        else:
            nodes.append(node._replace(inputs=inputs))
    return _rebuild(graph, nodes, source)


def merge_equal_values(graph: Graph) -> Graph:
    """Nodes that apply one operator to the same values are one node; sums are the same if their terms are.

    Layers are the same only if they own the same weights. Constants stay apart, see ``propagate_zeros``.
    """
    source: dict[str, str] = {}
    terms: dict[str, Terms] = {}
    first: dict[object, tuple[str, ...]] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = tuple([source.get(x, x) for x in node.inputs])
        key: object = (node.op_type, inputs, node.attributes, node.weights)
        if node.op_type == "Sum":
            terms[node.outputs[0]] = total = expand(inputs, terms)
            key = frozenset(total.items())
        known = first.setdefault(key, node.outputs) if inputs else node.outputs
        if known is node.outputs:
            nodes.append(node._replace(inputs=inputs))
        else:
            source.update(zip(node.outputs, known, strict=True))
    return _rebuild(graph, nodes, source)


def remove_dead_nodes(graph: Graph) -> Graph:
    """Only nodes that an output depends on remain."""
    needed = set(graph.outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    return _rebuild(graph, nodes[::-1])


def _is_zero(node: Node, zeros: set[str], zero_scalars: set[str]) -> bool:
    if node.op_type == "Mul":
        return not zeros.union(zero_scalars).isdisjoint(node.inputs)
    if node.op_type in ("Sum", "Add"):
        return zeros.issuperset(node.inputs)
    return node.op_type in ZERO_PRESERVING and node.inputs[0] in zeros


def _rebuild(graph: Graph, nodes: Sequence[Node], source: Mapping[str, str] | None = None) -> Graph:
    outputs = tuple([source.get(x, x) for x in graph.outputs]) if source else graph.outputs
    shapes: Mapping[str, Shape] = graph.shapes
    return Graph(graph.inputs, outputs, tuple(nodes), shapes)
