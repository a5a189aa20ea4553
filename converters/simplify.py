"""Say only what the network computes: each pass takes a graph and returns one with the same outputs.

Passes keep value names, so the shapes of what remains stay known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from zlib import crc32

from converters.graph import Graph, Node, Shape

# Operators with f(0) = 0 whatever their attributes.
ZERO_PRESERVING = frozenset(
    "Relu AveragePool MaxPool GlobalAveragePool Flatten Reshape Transpose Slice nn.Conv nn.Linear".split()
)

Terms = Counter[str]  # a sum as a multiset of values that are no sums


def simplify(graph: Graph) -> Graph:
    """Every pass of this file, in the order in which each profits from those before."""
    for rewrite in (
        fold_batch_norms,
        propagate_zeros,
        drop_identities,
        merge_equal_values,
        flatten_sums,
        remove_dead_nodes,
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
            nodes[at] = Node(
                "nn.ConvBias", conv.inputs, node.outputs, conv.attributes, conv.weights + node.weights
            )
            nodes[index] = None
    return _rebuild(graph, [node for node in nodes if node is not None])


def propagate_zeros(graph: Graph) -> Graph:
    """``x * 0`` and what follows: sums drop zeros, operators with f(0) = 0 pass them on.

    Where something still reads a zero (a convolution with bias makes a constant of it), it reads ``nn.Zeros``,
    one of its own: a constant shared by all blocks would tie them together.
    """
    zero_scalars = {
        node.outputs[0]
        for node in graph.nodes
        if node.op_type == "Constant" and node.attribute("value_float") == 0.0
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
            nodes.append(
                node._replace(op_type="Sum", inputs=tuple([x for x in node.inputs if x not in zeros]))
            )
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
            terms[node.outputs[0]] = total = _expand(inputs, terms)
            key = frozenset(total.items())
        known = first.setdefault(key, node.outputs) if inputs else node.outputs
        if known is node.outputs:
            nodes.append(node._replace(inputs=inputs))
        else:
            source.update(zip(node.outputs, known, strict=True))
    return _rebuild(graph, nodes, source)


def flatten_sums(graph: Graph) -> Graph:
    """Nested sums become sums of terms; a sum that contains another live one reads that instead of its terms.

    However additions were nested and shared before, the same sums come out.
    """
    graph = remove_dead_nodes(graph)
    terms: dict[str, Terms] = {}
    for node in graph.nodes:
        if node.op_type == "Sum":
            terms[node.outputs[0]] = _expand(node.inputs, terms)
    read = {x for node in graph.nodes if node.op_type != "Sum" for x in node.inputs}.union(graph.outputs)
    live = [x for x in terms if x in read]
    fingerprint = _Fingerprints(graph, terms)
    operands = {x: _factor(x, live, terms, fingerprint) for x in live}
    shapes = dict(graph.shapes)
    while shared := _largest_shared_part(operands, fingerprint):
        x = f"{'+'.join(sorted(shared.elements()))}"
        shapes[x] = shapes[next(iter(shared))]
        fingerprint.add_sum(x, shared)
        operands = {
            y: total - shared + Counter([x]) if shared <= total else total for y, total in operands.items()
        }
        operands[x] = shared
    sums = [Node("Sum", tuple(total.elements()), (x,)) for x, total in operands.items()]
    others = [node for node in graph.nodes if node.op_type != "Sum"]
    return Graph(graph.inputs, graph.outputs, tuple(_topological(others + sums, graph.inputs)), shapes)


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


def _expand(operands: Sequence[str], terms: Mapping[str, Terms]) -> Terms:
    total: Terms = Counter()
    for x in operands:
        if x in terms:
            total.update(terms[x])
        else:
            total[x] += 1
    return total


def _factor(value: str, live: Sequence[str], terms: Mapping[str, Terms], fingerprint: _Fingerprints) -> Terms:
    """Operands of one sum: the live sums whose multiples cover most of it, then the terms left over."""
    rest = terms[value].copy()
    parts = {x: _multiple(terms[x], rest) for x in live if terms[x] < rest}
    operands: Terms = Counter()
    for part in _largest_first(parts, fingerprint):
        while terms[part] <= rest:
            rest -= terms[part]
            operands[part] += 1
    return operands + rest


def _multiple(part: Terms, total: Terms) -> Terms:
    """``part`` as many times as ``total`` contains it."""
    times = min(total[x] // count for x, count in part.items())
    return Counter({x: count * times for x, count in part.items()})


def _largest_shared_part(sums: Mapping[str, Terms], fingerprint: _Fingerprints) -> Terms | None:
    """The largest multiset of at least two operands that two sums have in common."""
    readers: dict[str, list[str]] = defaultdict(list)
    for x, total in sums.items():
        for operand in total:
            readers[operand].append(x)
    pairs = {pair for readers_of_one in readers.values() for pair in combinations(readers_of_one, 2)}
    shared = {"+".join(pair): sums[pair[0]] & sums[pair[1]] for pair in pairs}
    shared = {name: part for name, part in shared.items() if part.total() > 1}
    if not shared:
        return None
    return shared[_largest_first(shared, fingerprint)[0]]


def _largest_first(sums: Mapping[str, Terms], fingerprint: _Fingerprints) -> list[str]:
    sizes = {x: total.total() for x, total in sums.items()}
    if len(set(sizes.values())) == len(sizes):
        return sorted(sums, key=lambda x: -sizes[x])
    return sorted(sums, key=lambda x: (-sizes[x], fingerprint.of_sum(sums[x])))


class _Fingerprints:
    """A number for every value that depends only on what it computes, not on names or order; made when asked."""

    def __init__(self, graph: Graph, terms: Mapping[str, Terms]) -> None:
        self._graph, self._terms = graph, terms
        self._known: dict[str, int] = {}

    def of_sum(self, total: Terms) -> int:
        """The fingerprint of a sum of known values."""
        if not self._known:
            self._known = {x: index for index, x in enumerate(self._graph.inputs)}
            for node in self._graph.nodes:
                self._add(node)
        return hash(tuple(sorted([(self._known[x], count) for x, count in total.items()])))

    def add_sum(self, value: str, total: Terms) -> None:
        """Make a new sum known."""
        self._known[value] = self.of_sum(total)

    def _add(self, node: Node) -> None:
        if node.op_type == "Sum":
            self.add_sum(node.outputs[0], self._terms[node.outputs[0]])
            return
        label = crc32(f"{node.op_type}{node.attributes}".encode())
        operands = [self._known[x] for x in node.inputs]
        for index, output in enumerate(node.outputs):
            self._known[output] = hash((label, index, *operands))


def _topological(nodes: Iterable[Node], inputs: Sequence[str]) -> list[Node]:
    """Nodes in an order in which every value is made before it is read."""
    known = set(inputs)
    ordered: list[Node] = []
    waiting = list(nodes)
    while waiting:
        late: list[Node] = []
        for node in waiting:
            if known.issuperset(node.inputs):
                known.update(node.outputs)
                ordered.append(node)
            else:
                late.append(node)
        waiting = late
    return ordered


def _rebuild(graph: Graph, nodes: Sequence[Node], source: Mapping[str, str] | None = None) -> Graph:
    outputs = tuple([source.get(x, x) for x in graph.outputs]) if source else graph.outputs
    shapes: Mapping[str, Shape] = graph.shapes
    return Graph(graph.inputs, outputs, tuple(nodes), shapes)
