"""Passes that reduce a graph to what its outputs depend on; each returns a graph with the same outputs.

Passes keep value names, so that the shapes of the remaining values stay known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

from converters.graph import Graph, Node, is_dropout_at_inference
from converters.passes.canonical import COMMUTATIVE
from converters.passes.rewriting import rewrite
from converters.passes.spell_arithmetic import round_scale, spell_product
from converters.passes.sums import Terms, expand, flatten_sums

# Operators without weights for which f(0) = 0 whatever their attributes. NOTE: this holds for a convolution without
# bias too, but it is kept: the reference counts treat layers with weights as live even if their input is zero.
ZERO_PRESERVING = frozenset(
    {
        *("Abs", "Elu", "Erf", "Gelu", "HardSwish", "LeakyRelu", "Neg", "Relu", "Selu", "Sqrt", "Tanh", "nn.Silu"),
        *("AveragePool", "GlobalAveragePool", "MaxPool"),
        *("Flatten", "Identity", "Transpose", "nn.Reshape", "nn.Scale", "nn.Slice"),
    }
)
ZERO_OF_ZEROS = frozenset({"Add", "Concat", "Max", "Min", "Sub", "Sum"})  # zero if all operands are zero
PRODUCTS = frozenset({"MatMul", "Mul", "nn.Scale"})
MAY_HAND_ON = frozenset({"AveragePool", "Dropout", "Identity", "MaxPool", "Sum"})
RANDOM = frozenset({"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"})


def simplify(graph: Graph) -> Graph:
    """Apply all passes of this file, each after those that help it, and again while scales can be merged or moved."""
    while True:
        for pass_ in (
            propagate_zeros,
            drop_identities,
            merge_equal_values,
            remove_dead_nodes,
            flatten_sums,
            fold_batch_norms,
        ):
            graph = pass_(graph)
        if _has_equal_scales(graph):
            continue
        gathered = gather_factors(graph)
        if gathered is graph:
            return _without_unread_inputs(graph)
        graph = gathered


def _without_unread_inputs(graph: Graph) -> Graph:
    """Leave out inputs that nothing reads, as one of torch's exporters does; if all are, they stay."""
    read = set(chain(graph.outputs, *[node.inputs for node in graph.nodes])) if len(graph.inputs) > 1 else ()
    return replace(graph, inputs=tuple([x for x in graph.inputs if x in read]) or graph.inputs)


def _has_equal_scales(graph: Graph) -> bool:
    """Return whether ``flatten_sums`` made a scale that the graph had already: of ``x + x`` beside ``2 * x``."""
    scales = [(node.inputs, node.attributes) for node in graph.nodes if node.op_type == "nn.Scale"]
    return len(set(scales)) < len(scales)


def gather_factors(graph: Graph) -> Graph:
    """Merge the scales that ``flatten_sums`` made with adjacent ones and move them behind products.

    Returns the graph itself if there is nothing to merge or move.
    """
    scaled = {node.outputs[0] for node in graph.nodes if node.op_type == "nn.Scale"}
    if all(scaled.isdisjoint(node.inputs) for node in graph.nodes if node.op_type in PRODUCTS):
        return graph
    gathered = rewrite(graph, spell_product)
    return graph if gathered.nodes == graph.nodes else rewrite(gathered, round_scale)


def fold_batch_norms(graph: Graph) -> Graph:
    """Fold a batch norm into the convolution or linear layer before it, if nothing else reads that layer."""
    uses = Counter(chain(graph.outputs, *[node.inputs for node in graph.nodes]))
    owned = {node.outputs[0] for node in graph.nodes if node.op_type == "nn.Weight"}
    nodes: list[Node] = []
    position: dict[str, int] = {}  # index of the layer that makes a value, while a batch norm may be folded into it
    for node in graph.nodes:
        op_type = node.op_type
        if op_type == "nn.BatchNormalization" and uses[node.inputs[0]] == 1 and node.inputs[0] in position:
            at = position.pop(node.inputs[0])
            layer, bias = _with_batch_norm(nodes[at], node)
            if bias is None:
                nodes[at] = layer
            else:  # the bias takes the layer's position, so that it comes before the layer
                nodes[at] = bias
                at = len(nodes)
                nodes.append(layer)
            position[node.outputs[0]] = at
        else:
            transposed = op_type == "ConvTranspose" and owned.issuperset(node.inputs[1:])
            if op_type in ("nn.Conv", "nn.ConvBias") or transposed or _is_linear_of_rows(node, graph):
                position[node.outputs[0]] = len(nodes)
            nodes.append(node)
    return _rebuild(graph, nodes)


def _with_batch_norm(layer: Node, norm: Node) -> tuple[Node, Node | None]:
    """Return the layer with the batch norm folded in, and a new bias node if the layer reads it as an input."""
    op_type, inputs, _, attributes, weights = layer
    if op_type != "ConvTranspose":
        biased = f"{op_type.removesuffix('Bias')}Bias"
        return Node(biased, inputs, norm.outputs, attributes, weights + norm.weights), None
    if len(inputs) == 3:
        return layer._replace(outputs=norm.outputs), None
    bias = Node("nn.Weight", (), (f"{norm.outputs[0]}.bias",), norm.attributes, norm.weights)
    return layer._replace(inputs=(*inputs, *bias.outputs), outputs=norm.outputs), bias


def zero_scalars(graph: Graph) -> frozenset[str]:
    """Return the names of constants that are the float 0."""
    return frozenset(
        node.outputs[0] for node in graph.nodes if node.op_type == "Constant" and node.attribute("value_float") == 0.0
    )


def propagate_zeros(graph: Graph) -> Graph:
    """Propagate the zeros of ``x * 0``: sums drop zero operands, and operators with f(0) = 0 pass zeros on.

    A node that still reads a zero, such as a convolution with bias, gets an ``nn.Zeros`` of its own: a constant shared
    by all blocks would connect them, so that the graph could not be cut between them.
    """
    scalars = zero_scalars(graph)
    if not scalars and all(node.op_type != "nn.Zeros" for node in graph.nodes):
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
        scaled_by_zero = node.op_type == "Mul" and not scalars.isdisjoint(node.inputs)
        if node.op_type != "nn.Zeros" and not scaled_by_zero and zeros.isdisjoint(node.inputs):
            nodes.append(node)
        elif _is_zero(node, zeros) and node.outputs[0] in shapes:
            zeros.update(node.outputs)
        elif node.op_type in ("Sum", "Add") and _one_shape(graph, (*node.inputs, *node.outputs)):
            nodes.append(node._replace(op_type="Sum", inputs=tuple([x for x in node.inputs if x not in zeros])))
        else:
            inputs = tuple([constant(x) if x in zeros else x for x in node.inputs])
            nodes.append(node._replace(inputs=inputs))
    outputs = tuple([constant(x) if x in zeros else x for x in graph.outputs])
    return replace(graph, outputs=outputs, nodes=tuple(nodes), shapes=shapes)


def drop_identities(graph: Graph) -> Graph:
    """Remove nodes that pass on their input: Identity, Dropout at inference, sums of one operand, 1x1 pools."""
    source: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if source:
            node = node.reading(source)
        if node.op_type in MAY_HAND_ON and _hands_on(node) and not _any_read(node.outputs[1:], graph):
            source[node.outputs[0]] = node.inputs[0]
        else:
            nodes.append(node)
    return _rebuild(graph, nodes, source)


def merge_equal_values(graph: Graph) -> Graph:
    """Merge nodes that compute the same value (common subexpressions); sums are compared by their terms.

    Layers are equal only if they own the same weights. Constants are not merged, see ``propagate_zeros``.
    """
    source: dict[str, str] = {}
    terms: dict[str, Terms] = {}
    first: dict[object, tuple[str, ...]] = {}
    owners = Counter([node.weights for node in graph.nodes])
    nodes: list[Node] = []
    for node in graph.nodes:
        if source:
            node = node.reading(source)
        op_type, inputs, outputs, attributes, weights = node
        if weights and owners[weights] == 1:  # most layers; computing the key would dominate the cost of this pass
            nodes.append(node)
            continue
        if op_type == "Sum":
            terms[outputs[0]] = total = expand(inputs, terms)
            key: object = frozenset(total.items())
        else:
            operands = sorted(inputs) if op_type in COMMUTATIVE else inputs
            key = (op_type, len(outputs), *operands, attributes, weights)
        may_merge = inputs and op_type not in RANDOM
        known = first.setdefault(key, outputs) if may_merge else outputs
        if known is outputs:
            nodes.append(node)
        else:
            source.update(zip(outputs, known, strict=True))
    return _rebuild(graph, nodes, source)


def remove_dead_nodes(graph: Graph) -> Graph:
    """Remove nodes that no output depends on (dead-code elimination)."""
    needed = set(graph.outputs)
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    return _rebuild(graph, nodes[::-1])


def _is_linear_of_rows(node: Node, graph: Graph) -> bool:
    """Return whether a node is a linear layer with a matrix as output.

    With more axes, a batch norm's channels are the second axis, but the layer's features are the last one.
    """
    return node.op_type in ("nn.Linear", "nn.LinearBias") and len(graph.shapes.get(node.outputs[0], ())) == 2


def _hands_on(node: Node) -> bool:
    if node.op_type in ("AveragePool", "MaxPool"):
        return node.attributes == (("kernel_shape", (1, 1)),) and len(node.outputs) == 1
    is_sum_of_one = node.op_type == "Sum" and len(node.inputs) == 1
    return node.op_type == "Identity" or is_sum_of_one or is_dropout_at_inference(node)


def _any_read(values: Sequence[str], graph: Graph) -> bool:
    return any(x in node.inputs for x in values for node in graph.nodes) or not set(values).isdisjoint(graph.outputs)


def _is_zero(node: Node, zeros: set[str]) -> bool:
    """Return whether a node of which some input is zero makes only zeros."""
    if node.op_type in ZERO_OF_ZEROS:
        return zeros.issuperset(node.inputs)
    if node.op_type in ZERO_PRESERVING or _clips_around_zero(node):
        return node.inputs[0] in zeros and len(node.outputs) == 1
    return node.op_type in ("Mul", "nn.Zeros")


def _clips_around_zero(node: Node) -> bool:
    if node.op_type != "nn.Clip":
        return False
    low, high = node.attribute("min"), node.attribute("max")
    return isinstance(low, float) and isinstance(high, float) and low <= 0.0 <= high


def _one_shape(graph: Graph, values: Sequence[str]) -> bool:
    """Return whether all values have the same shape, which is not so if a sum broadcasts."""
    return len({graph.shapes.get(x) for x in values}) == 1


def _rebuild(graph: Graph, nodes: Sequence[Node], source: Mapping[str, str] | None = None) -> Graph:
    outputs = tuple([source.get(x, x) for x in graph.outputs]) if source else graph.outputs
    return replace(graph, outputs=outputs, nodes=tuple(nodes))
