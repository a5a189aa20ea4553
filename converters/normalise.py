"""One operator for one computation: exporters spell the same layer in several ways, this chooses ours.

Each pass takes a graph and returns one with the same outputs, as in ``simplify``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from converters.graph import Attributes, AttributeValue, Graph, Node

_WINDOW_DEFAULTS: Mapping[str, AttributeValue] = {
    "auto_pad": "NOTSET",
    "dilations": (1, 1),
    "pads": (0, 0, 0, 0),
    "strides": (1, 1),
}
# What an attribute means when it is left out, opset 26; one that says the same is dropped.
DEFAULTS: Mapping[str, Mapping[str, AttributeValue]] = {
    "nn.Conv": {**_WINDOW_DEFAULTS, "group": 1},
    "nn.ConvBias": {**_WINDOW_DEFAULTS, "group": 1},
    "MaxPool": {**_WINDOW_DEFAULTS, "ceil_mode": 0, "storage_order": 0},
    "AveragePool": {**_WINDOW_DEFAULTS, "ceil_mode": 0, "count_include_pad": 0},
    "HardSigmoid": {"beta": 0.5},
    "Flatten": {"axis": 1},
}


def normalise(graph: Graph) -> Graph:
    """Every pass of this file, in an order in which each finds what those before prepare."""
    for rewrite in (
        drop_defaults,
        absorb_constants,
        merge_slices,
        spell_sums,
        spell_biases,
        spell_global_pools,
        spell_flattens,
        spell_hard_activations,
    ):
        graph = rewrite(graph)
    return graph


def drop_defaults(graph: Graph) -> Graph:
    """Attributes that say what leaving them out says, and kernel shapes that the weights tell."""
    nodes: list[Node] = []
    for node in graph.nodes:
        defaults = DEFAULTS.get(node.op_type, {})
        kept = tuple([(name, value) for name, value in node.attributes if defaults.get(name) != value])
        if node.op_type in ("nn.Conv", "nn.ConvBias"):
            kept = tuple([(name, value) for name, value in kept if name != "kernel_shape"])
        if node.op_type == "AveragePool" and "pads" not in dict(kept):
            kept = tuple([(name, value) for name, value in kept if name != "count_include_pad"])
        nodes.append(node._replace(attributes=kept))
    return replace(graph, nodes=tuple(nodes))


def absorb_constants(graph: Graph) -> Graph:
    """``Clip``, ``Reshape`` and ``Slice`` by constants take them as attributes of ``nn`` functions."""
    constants = {n.outputs[0]: n.attributes[0][1] for n in graph.nodes if n.op_type == "Constant"}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type in ("Clip", "Reshape", "Slice") and all(x in constants for x in node.inputs[1:]):
            node = _absorbed(graph, node, [constants[x] for x in node.inputs[1:]])
        nodes.append(node)
    read = {x for node in nodes for x in node.inputs}.union(graph.outputs)
    return replace(graph, nodes=tuple([n for n in nodes if n.op_type != "Constant" or n.outputs[0] in read]))


def merge_slices(graph: Graph) -> Graph:
    """Slices of a slice that nothing else reads, on other axes, become one."""
    uses = Counter(x for node in graph.nodes for x in node.inputs) + Counter(graph.outputs)
    nodes: dict[str, Node] = {}
    for node in graph.nodes:
        inner = nodes.get(node.inputs[0]) if node.inputs else None
        if node.op_type == "nn.Slice" and inner and inner.op_type == "nn.Slice" and uses[inner.outputs[0]] == 1:
            merged = _merged_slices(inner, node)
            if merged:
                del nodes[inner.outputs[0]]
                node = merged
        nodes[node.outputs[0]] = node
    return replace(graph, nodes=tuple(nodes.values()))


def spell_sums(graph: Graph) -> Graph:
    """``Add`` of values of one shape is a ``Sum``."""
    nodes = [
        node._replace(op_type="Sum") if node.op_type == "Add" and _one_shape(graph, node.inputs) else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes))


def spell_biases(graph: Graph) -> Graph:
    """A weight added to a convolution or linear layer that nothing else reads is its bias."""
    uses = Counter(x for node in graph.nodes for x in node.inputs) + Counter(graph.outputs)
    nodes: dict[str, Node] = {}
    for node in graph.nodes:
        if node.op_type == "Add":
            layer = next((nodes[x] for x in node.inputs if x in nodes and _takes_bias(nodes[x], uses)), None)
            bias = next((nodes[x] for x in node.inputs if x in nodes and nodes[x].op_type == "nn.Weight"), None)
            if layer and bias and _fits(layer, bias):
                del nodes[layer.outputs[0]], nodes[bias.outputs[0]]
                node = layer._replace(
                    op_type=f"{layer.op_type}Bias", outputs=node.outputs, weights=layer.weights + bias.weights
                )
        nodes[node.outputs[0]] = node
    return replace(graph, nodes=tuple(nodes.values()))


def spell_global_pools(graph: Graph) -> Graph:
    """The mean over height and width is ``GlobalAveragePool``, then ``Flatten`` where the axes are dropped."""
    constants = {n.outputs[0]: n.attributes[0][1] for n in graph.nodes if n.op_type == "Constant"}
    shapes = dict(graph.shapes)
    nodes: list[Node] = []
    for node in graph.nodes:
        axes = constants.get(node.inputs[1]) if node.op_type == "ReduceMean" and len(node.inputs) > 1 else None
        shape = shapes.get(node.inputs[0]) if node.inputs else None
        if shape is None or len(shape) != 4 or not _are_height_and_width(axes):
            nodes.append(node)
            continue
        pooled = node.outputs[0] if node.attribute("keepdims", 1) else f"{node.outputs[0]}.pooled"
        shapes[pooled] = (*shape[:2], 1, 1)
        nodes.append(Node("GlobalAveragePool", node.inputs[:1], (pooled,)))
        if pooled != node.outputs[0]:
            nodes.append(Node("Flatten", (pooled,), node.outputs))
    return replace(graph, nodes=tuple(nodes), shapes=shapes)


def spell_flattens(graph: Graph) -> Graph:
    """Reshaping (N, …) to (N, all the rest) is ``Flatten``."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type == "nn.Reshape":
            before, after = graph.shapes.get(node.inputs[0], ()), node.attribute("shape")
            if len(before) > 2 and after == (before[0], prod(before[1:])):
                node = Node("Flatten", node.inputs, node.outputs)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def spell_hard_activations(graph: Graph) -> Graph:
    """``relu6(x + 3) / 6`` is ``HardSigmoid``, and ``x`` times that is ``HardSwish``."""
    made = {x: node for node in graph.nodes for x in node.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        if source := _hard_sigmoid_source(node, made):
            node = Node("HardSigmoid", (source,), node.outputs, (("alpha", 1 / 6),))
        made[node.outputs[0]] = node
        if node.op_type == "Mul":
            gate = next((made[x] for x in node.inputs if x in made and _is_hard_sigmoid(made[x])), None)
            if gate and sorted(node.inputs) == sorted((gate.inputs[0], gate.outputs[0])):
                node = Node("HardSwish", gate.inputs, node.outputs)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _absorbed(graph: Graph, node: Node, values: Sequence[AttributeValue]) -> Node:
    attributes: Attributes = ()
    shape = graph.shapes.get(node.inputs[0])
    if node.op_type == "Clip" and len(values) == 2:
        attributes = (("max", values[1]), ("min", values[0]))
    elif node.op_type == "Reshape" and node.outputs[0] in graph.shapes:
        attributes = (("shape", graph.shapes[node.outputs[0]]),)
    elif node.op_type == "Slice" and shape is not None and _steps_by_one(values):
        starts, ends = _as_tuple(values[0]), _as_tuple(values[1])
        axes = _as_tuple(values[2]) if len(values) > 2 else tuple(range(len(starts)))
        axes = tuple([axis % len(shape) for axis in axes])
        bounds = [slice(s, e).indices(shape[axis])[:2] for s, e, axis in zip(starts, ends, axes, strict=True)]
        cuts = sorted((axis, *bound) for axis, bound in zip(axes, bounds, strict=True) if bound != (0, shape[axis]))
        if not cuts:
            return Node("Identity", node.inputs[:1], node.outputs)
        attributes = _slice_attributes(cuts)
    return Node(f"nn.{node.op_type}", node.inputs[:1], node.outputs, attributes) if attributes else node


def _merged_slices(inner: Node, outer: Node) -> Node | None:
    cuts = [cut for node in (inner, outer) for cut in zip(*(_as_tuple(v) for v in _slice_values(node)), strict=True)]
    if len({axis for axis, _, _ in cuts}) < len(cuts):
        return None
    return Node("nn.Slice", inner.inputs, outer.outputs, _slice_attributes(sorted(cuts)))


def _slice_values(node: Node) -> list[AttributeValue]:
    attributes = dict(node.attributes)
    return [attributes["axes"], attributes["starts"], attributes["ends"]]


def _slice_attributes(cuts: Sequence[tuple[int, ...]]) -> Attributes:
    axes, starts, ends = zip(*cuts, strict=True)
    return (("axes", axes), ("ends", ends), ("starts", starts))


def _are_height_and_width(axes: AttributeValue | None) -> bool:
    return isinstance(axes, tuple) and sorted(int(axis) % 4 for axis in axes) == [2, 3]


def _steps_by_one(values: Sequence[AttributeValue]) -> bool:
    return len(values) < 4 or set(_as_tuple(values[3])) == {1}


def _as_tuple(value: AttributeValue) -> tuple[int, ...]:
    values = value if isinstance(value, tuple) else (value,)
    return tuple([int(number) for number in values])


def _one_shape(graph: Graph, inputs: Sequence[str]) -> bool:
    shapes = {graph.shapes.get(x) for x in inputs}
    return len(shapes) == 1 and None not in shapes


def _takes_bias(node: Node, uses: Mapping[str, int]) -> bool:
    return node.op_type in ("nn.Conv", "nn.Linear") and uses[node.outputs[0]] == 1


def _fits(layer: Node, bias: Node) -> bool:
    """Is the weight one number an output channel?"""
    rows, shape = layer.attribute("weight_shape"), bias.attribute("weight_shape")
    trailing = (1, 1) if layer.op_type == "nn.Conv" else ()
    if not isinstance(rows, tuple) or not isinstance(shape, tuple):
        return False
    return shape[len(shape) - 1 - len(trailing) :] == (rows[0], *trailing) and prod(shape) == rows[0]


def _constant(x: str, made: Mapping[str, Node]) -> AttributeValue | None:
    node = made.get(x)
    return node.attribute("value_float") if node and node.op_type == "Constant" else None


def _hard_sigmoid_source(node: Node, made: Mapping[str, Node]) -> str | None:
    """x, if the node computes relu6(x + 3) / 6."""
    if node.op_type != "Div" or _constant(node.inputs[1], made) != 6.0:
        return None
    clip = made.get(node.inputs[0])
    if clip is None or clip.op_type != "nn.Clip" or clip.attributes != (("max", 6.0), ("min", 0.0)):
        return None
    add = made.get(clip.inputs[0])
    if add is None or add.op_type != "Add":
        return None
    terms = [x for x in add.inputs if _constant(x, made) != 3.0]
    return terms[0] if len(terms) == 1 else None


def _is_hard_sigmoid(node: Node) -> bool:
    return node.op_type == "HardSigmoid" and node.attributes == (("alpha", 1 / 6),)
