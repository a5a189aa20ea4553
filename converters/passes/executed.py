"""The operations that a reference network executes, including those whose results are unused.

Cells with ``none`` edges or unused nodes execute more than their outputs depend on. Canonical text omits the rest, as
a compiler does. Published latencies and energies include it, because the networks were measured as built. The measured
text, from which these are predicted, therefore has the executed blocks after the canonical text, as functions that are
never called. Blocks without unused operations are included too, so that all that was executed is found in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from converters.graph import AttributeValue, Function, Graph, Node, Reference
from converters.passes.canonical import canonicalise
from converters.passes.outline import outline
from converters.passes.simplify import drop_identities, fold_batch_norms, remove_dead_nodes, zero_scalars


def executed_blocks(faithful: Graph) -> tuple[Function, ...]:
    """Return the innermost repeated blocks of a faithful graph as functions E0, E1, …, in order of first occurrence.

    A faithful graph is the network as its reference builds it, before any simplification.
    """
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
    """Return what is left of a faithful graph after a compiler that looks at operators and not at values.

    Operands scaled by zero are removed from sums, then nodes that nothing reads. Skip connections stay, and so does
    everything that reads a sum of only zeros. The energy on HW-NAS-Bench's edgegpu follows this graph
    (docs/log.md, 2026-11-20).
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
    """Return the attributes of the first call of every function; functions are listed after their callers."""
    calls: dict[str, Mapping[str, AttributeValue]] = {"": {}}
    for name, nodes in (("", graph.nodes), *[(f.name, f.nodes) for f in graph.functions]):
        for node in _with_values(nodes, calls[name]):
            if node.callee:
                calls.setdefault(node.callee, dict(node.attributes))
    return calls


def _with_values(nodes: Sequence[Node], values: Mapping[str, AttributeValue]) -> tuple[Node, ...]:
    """Replace references in a function's nodes by the attribute values of a call."""
    result: list[Node] = []
    for node in nodes:
        attributes = [(name, values[x.name] if isinstance(x, Reference) else x) for name, x in node.attributes]
        result.append(node._replace(attributes=tuple(attributes)))
    return tuple(result)


def spell_scales(graph: Graph) -> Graph:
    """Replace ``x * 0`` by ``nn.Scale`` by 0, and skip connections, for which some devices copy data, by one by 1."""
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
