"""What a reference network runs beside what it computes: operations whose results are lost.

Cells with ``none`` edges or unused nodes compute less than they run. Canonical text leaves the rest out, as any
compiler does; published latencies and energies do not, for the networks were measured as they stood. Text for
predicting those carries the blocks as they were run behind the canonical text, as functions that nothing calls.
"""

from __future__ import annotations

from dataclasses import replace

from converters.canonical import canonicalise
from converters.graph import Function, Graph, Node
from converters.outline import outline
from converters.simplify import drop_identities, fold_batch_norms, remove_dead_nodes


def executed_blocks(faithful: Graph, outlined: Graph) -> tuple[Function, ...]:
    """Innermost repeated blocks as they are run, named E0, E1, …, where the outlined graph has no such block.

    Args:
        faithful: the network as its reference builds it.
        outlined: the same network, canonical and outlined.
    """
    executed = fold_batch_norms(faithful)
    for rewrite in (spell_zero_products, drop_identities, remove_dead_nodes, canonicalise, outline):
        executed = rewrite(executed)
    known = {_form(function) for function in outlined.functions}
    blocks = [
        function
        for function in executed.functions
        if not any(node.op_type.startswith("block.") for node in function.nodes) and _form(function) not in known
    ]
    return tuple([block._replace(name=f"E{index}") for index, block in enumerate(blocks)])


def spell_zero_products(graph: Graph) -> Graph:
    """``x * 0`` as ``nn.Scale`` by 0."""
    scalars = {
        node.outputs[0] for node in graph.nodes if node.op_type == "Constant" and node.attribute("value_float") == 0.0
    }
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type == "Mul" and node.inputs[1] in scalars:
            node = Node("nn.Scale", node.inputs[:1], node.outputs, (("factor", 0.0),))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _form(function: Function) -> tuple[object, ...]:
    """A function's body, names aside."""
    values = [*function.inputs, *(x for node in function.nodes for x in node.outputs)]
    place = {x: index for index, x in enumerate(values)}
    return tuple([(node.op_type, tuple([place[x] for x in node.inputs]), node.attributes) for node in function.nodes])
