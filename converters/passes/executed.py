"""What a reference network runs beside what it computes: operations whose results are lost.

Cells with ``none`` edges or unused nodes compute less than they run. Canonical text leaves the rest out, as any
compiler does; published latencies and energies do not, for the networks were measured as they stood. Text for
predicting those carries the blocks as they were run behind the canonical text, as functions that nothing calls.
Blocks that lose nothing are there too: what reads the text finds in one place what was run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from converters.graph import AttributeValue, Function, Graph, Node, Reference
from converters.passes.canonical import canonicalise
from converters.passes.outline import outline
from converters.passes.simplify import drop_identities, fold_batch_norms, remove_dead_nodes, zero_scalars


def executed_blocks(faithful: Graph) -> tuple[Function, ...]:
    """Innermost repeated blocks of a network as its reference builds it, named E0, E1, …, as they first occur."""
    executed = fold_batch_norms(faithful)
    for rewrite in (spell_scales, drop_identities, remove_dead_nodes, canonicalise, outline):
        executed = rewrite(executed)
    calls = _first_calls(executed)
    blocks = [f for f in executed.functions if not any(node.callee for node in f.nodes)]
    return tuple(
        [
            Function(f"E{index}", f.inputs, f.outputs, (), _with_values(f.nodes, calls[f.name]))
            for index, f in enumerate(blocks)
        ]
    )


def compiled_graph(faithful: Graph) -> Graph:
    """What a compiler that looks at operators, not at values, leaves of a network as its reference builds it.

    Sums lose operands that are scaled by zero, and what then nothing reads is gone; skip connections stay, and so does
    what reads a sum of zeros alone. That is what energy on HW-NAS-Bench's edgegpu goes by, see docs/log.md.
    """
    graph = spell_scales(fold_batch_norms(faithful))
    zeros = {x for node in graph.nodes if node.attribute("factor") == 0.0 for x in node.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type in ("Sum", "Add") and not zeros.isdisjoint(node.inputs):
            left = tuple([x for x in node.inputs if x not in zeros]) or node.inputs[:1]
            node = node._replace(op_type="Sum", inputs=left)
        nodes.append(node)
    return remove_dead_nodes(drop_identities(replace(graph, nodes=tuple(nodes))))


def _first_calls(graph: Graph) -> Mapping[str, Mapping[str, AttributeValue]]:
    """The attributes of every block's first call; blocks stand behind what calls them."""
    calls: dict[str, Mapping[str, AttributeValue]] = {"": {}}
    for name, nodes in (("", graph.nodes), *[(f.name, f.nodes) for f in graph.functions]):
        for node in _with_values(nodes, calls[name]):
            if node.callee:
                calls.setdefault(node.callee, dict(node.attributes))
    return calls


def _with_values(nodes: Sequence[Node], values: Mapping[str, AttributeValue]) -> tuple[Node, ...]:
    """A function's nodes with values in place of its attributes."""
    result: list[Node] = []
    for node in nodes:
        attributes = [(name, values[x.name] if isinstance(x, Reference) else x) for name, x in node.attributes]
        result.append(node._replace(attributes=tuple(attributes)))
    return tuple(result)


def spell_scales(graph: Graph) -> Graph:
    """``x * 0`` as ``nn.Scale`` by 0, and a skip connection, which some devices copy their data for, as one by 1."""
    zeros = zero_scalars(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op_type == "Mul" and not zeros.isdisjoint(node.inputs):
            scaled = tuple([x for x in node.inputs if x not in zeros]) or node.inputs[:1]
            node = Node("nn.Scale", scaled, node.outputs, (("factor", 0.0),))
        elif node.op_type == "Identity":
            node = Node("nn.Scale", node.inputs, node.outputs, (("factor", 1.0),))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
