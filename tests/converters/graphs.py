"""Small graphs for tests: by hand, at random, and other spellings of the same graph."""

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from converters.builder import GraphBuilder
from converters.graph import Graph, Node
from converters.passes.canonical import COMMUTATIVE

SHAPE = (1, 2, 4, 4)
KINDS = (
    *(
        "relu",
        "silu",
        "add",
        "zero",
        "gate",
        "concat_slice",
        "transpose_twice",
        "average_pool",
        "max_pool",
        "pixel_pool",
    ),
    *("conv", "conv_bias", "conv_batch_norm", "batch_norm"),
)
OPERANDS = {"add": 4, "gate": 2, "concat_slice": 2}  # at most; of other kinds one


def node(op_type: str, inputs: str, output: str, *, weights: str = "", **attributes) -> Node:
    """A node; inputs and weights as words."""
    return Node(op_type, tuple(inputs.split()), (output,), tuple(sorted(attributes.items())), tuple(weights.split()))


def conv(x: str, output: str, weights: str) -> Node:
    return node("nn.Conv", x, output, weights=weights, weight_shape=(2, 2, 1, 1))


def batch_norm(x: str, output: str, weights: str) -> Node:
    return node("nn.BatchNormalization", x, output, weights=weights, weight_shape=(2,))


def graph(*nodes: Node, outputs: str) -> Graph:
    """A graph over the input ``x`` in which every value has the same shape, scalar constants aside."""
    values = {x: () if made.op_type == "Constant" else SHAPE for made in nodes for x in made.outputs}
    return Graph(("x",), tuple(outputs.split()), nodes, {"x": SHAPE, **values})


@st.composite
def random_graphs(draw, max_nodes: int = 12, kinds: Sequence[str] = KINDS) -> Graph:
    """Directed acyclic graphs on tiny tensors, with one or two outputs; nodes read the latest values."""
    steps = draw(_steps(kinds, max_nodes))
    return _built(steps, draw(st.lists(st.integers(0, len(steps)), max_size=1)))


@st.composite
def repetitive_graphs(draw) -> Graph:
    """A block of a few steps several times over; it reads the value before it, seldom the one before that."""
    size, reach = draw(st.integers(2, 7)), draw(st.sampled_from((1, 1, 1, 2)))
    block = []
    for index in range(size):
        kind = draw(st.sampled_from(KINDS))
        others = draw(st.lists(st.integers(1, index + reach), max_size=OPERANDS.get(kind, 1) - 1))
        block.append((kind, [1, *others]))
    steps = block * draw(st.integers(2, 6))
    return _built(steps, draw(st.lists(st.integers(0, len(steps)), max_size=1)))


Step = tuple[str, list[int]]  # a kind, and how far back among the values its operands are


@st.composite
def _steps(draw, kinds: Sequence[str], max_nodes: int) -> list[Step]:
    back = st.integers(1, 6)
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_nodes))
    return [(kind, draw(st.lists(back, min_size=1, max_size=OPERANDS.get(kind, 1)))) for kind in chosen]


def _built(steps: Sequence[Step], outputs: Sequence[int]) -> Graph:
    """The graph whose first output sums up the last values; the others are at these places."""
    g = GraphBuilder(SHAPE)
    values = [g.input]
    for kind, back in steps:
        values.append(_append(g, kind, [values[-min(distance, len(values))] for distance in back]))
    return g.build(g.add(*values[-3:]), *[values[place] for place in outputs])


def _append(g: GraphBuilder, kind: str, operands: list[str]) -> str:
    x, y = operands[0], operands[-1]
    match kind:
        case "add":
            return g.add(*operands)
        case "gate":
            return g.multiply(x, g.sigmoid(y))
        case "concat_slice":
            return g.slice(g.concat(x, y), axes=(1,), starts=(1,), ends=(3,))
        case "transpose_twice":
            return g.transpose(g.transpose(x, 0, 1, 3, 2), 0, 1, 3, 2)
        case "average_pool" | "max_pool":
            return getattr(g, kind)(x, kernel=3, padding=1)
        case "pixel_pool":
            return g.max_pool(x, kernel=1)
        case "conv" | "conv_bias":
            return g.conv(x, 2, kernel=1, bias=kind == "conv_bias")
        case "conv_batch_norm":
            return g.batch_norm(g.conv(x, 2, kernel=1))
    return getattr(g, kind)(x)


def nest_sums(graph: Graph, rng: random.Random) -> Graph:
    """The same graph with sums of many operands as sums of two, in any order and any nesting."""
    nodes: list[Node] = []
    shapes = dict(graph.shapes)
    for given in graph.nodes:
        operands = list(given.inputs)
        while given.op_type == "Sum" and len(operands) > 2:
            part = f"{given.outputs[0]}.{len(operands)}"
            pair = [operands.pop(rng.randrange(len(operands))) for _ in range(2)]
            nodes.append(Node("Sum", tuple(pair), (part,)))
            operands.append(part)
            shapes[part] = shapes[given.outputs[0]]
        nodes.append(given._replace(inputs=tuple(operands)))
    return Graph(graph.inputs, graph.outputs, tuple(nodes), shapes)


def scramble(graph: Graph, rng: random.Random) -> Graph:
    """The same graph in another topological order, with other names and commutative operands shuffled."""
    values = [*graph.inputs, *(x for node in graph.nodes for x in node.outputs)]
    numbers = rng.sample(range(len(values)), len(values))
    names = {x: f"s{number}" for x, number in zip(values, numbers, strict=True)} | {"": ""}
    nodes = [_renamed(node, names, rng) for node in _other_order(graph, rng)]
    inputs, outputs = (tuple(names[x] for x in ends) for ends in (graph.inputs, graph.outputs))
    shapes = {names[x]: shape for x, shape in graph.shapes.items() if x in names}
    types = {names[x]: kind for x, kind in graph.types.items() if x in names}
    return Graph(inputs, outputs, tuple(nodes), shapes, types=types)


def _other_order(graph: Graph, rng: random.Random) -> list[Node]:
    waiting, known, ordered = list(graph.nodes), {"", *graph.inputs}, []
    while waiting:
        chosen = rng.choice([node for node in waiting if known.issuperset(node.inputs)])
        waiting.remove(chosen)
        known.update(chosen.outputs)
        ordered.append(chosen)
    return ordered


def _renamed(node: Node, names: dict[str, str], rng: random.Random) -> Node:
    inputs = [names[x] for x in node.inputs]
    if node.op_type in COMMUTATIVE:
        rng.shuffle(inputs)
    return node._replace(
        inputs=tuple(inputs),
        outputs=tuple(names[x] for x in node.outputs),
        weights=tuple(f"{names[node.outputs[0]]}.{x}" for x in node.weights),
    )
