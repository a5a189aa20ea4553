"""Limits on texts and models that onnx does not check itself: beyond them it overflows its stack or never ends.

Each check returns the reason for refusal as "expected …, got …", or an empty string.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, ModelProto, NodeProto

MAX_NESTING = 100  # nested brackets: protobuf allows no deeper model, and 60,000 of them crash the parser
MAX_NODES = 500_000  # with all calls inlined: 30 functions that each call the next one twice give 2 ** 30 nodes
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|#[^\n]*|[({]|[)}]', re.DOTALL)
_TERM = r"[A-Za-z ]*(?:\.\.\.[A-Za-z ]*)?"
_EQUATION = re.compile(f"{_TERM}(?:,{_TERM})*(?:->{_TERM})?")

FunctionName = tuple[str, str]


def excess_of_text(onnx_text: str) -> str:
    """Return why a text must not be given to the parser; "" if it may."""
    depth = 0
    for match in _BRACKETS.finditer(onnx_text):
        token = match[0]
        depth += (token in "({") - (token in ")}")
        if depth > MAX_NESTING:
            return f"expected at most {MAX_NESTING} nested brackets, got more at character {match.start()}"
    return ""


def excess_of_model(model: ModelProto) -> str:
    """Return why a model must not be given to the checker, shape inference and the inliner; "" if it may."""
    count = _num_nodes(model)
    if count > MAX_NODES:
        return f"expected at most {MAX_NODES} nodes with all functions inlined, got {count}"
    for body in (model.graph, *model.functions):
        for node in _with_inner_nodes(body.node):
            for attribute in node.attribute if node.op_type == "Einsum" else ():
                equation = attribute.s.decode(errors="replace")
                if attribute.name == "equation" and not _EQUATION.fullmatch(equation):
                    return f"expected an equation of letters, '...', ',' and '->' in Einsum, got {equation!r}"
    return ""


def _num_nodes(model: ModelProto) -> int:
    """Return the number of nodes with all functions inlined.

    If functions call each other in a cycle, every call counts as one node; onnx refuses such models before it inlines.
    """
    calls: dict[FunctionName, Counter[FunctionName]] = {
        (function.domain, function.name): _calls(function.node) for function in model.functions
    }
    sizes: dict[FunctionName, int] = {}
    with suppress(CycleError):
        for name in TopologicalSorter(calls).static_order():
            sizes[name] = _size(calls.get(name, Counter()), sizes)
    return _size(_calls(model.graph.node), sizes)


def _calls(nodes: Iterable[NodeProto]) -> Counter[FunctionName]:
    return Counter((node.domain, node.op_type) for node in _with_inner_nodes(nodes))


def _size(calls: Counter[FunctionName], sizes: dict[FunctionName, int]) -> int:
    return sum(count * max(sizes.get(name, 1), 1) for name, count in calls.items())


def _with_inner_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes and those of their subgraphs."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                waiting += [inner for graph in (attribute.g, *attribute.graphs) for inner in graph.node]
