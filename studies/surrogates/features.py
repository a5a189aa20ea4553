"""Features of a network as named numbers: sizes, counts of layers by resolution, walks, neighbours and rows.

Walks and neighbours are those of ``nasrlm.text.counts``, here of canonical graphs without input and output. A row is an
operator with all its attributes, including widths. See docs/few-labels.md.

N networks, F features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache, partial
from math import prod
from typing import TypeVar

import numpy as np

from converters.convert import to_canonical_graph, to_graph
from converters.engines import in_chunks
from converters.graph import Attributes, Graph, Node, depth_of
from converters.passes.executed import compiled_graph
from converters.passes.segments import constant_values
from nasrlm.arrays import FloatArray
from nasrlm.text.counts import mixed_paths, neighbours, walks
from nasrlm.text.operator_graph import OperatorGraph
from nasrlm.text.operators import PASSED
from spaces.space import SearchSpace

A = TypeVar("A", bound=Hashable)
Features = Mapping[str, float]

WALK = "walk "  # prefix of the names of walks
SIZES = ("params", "macs", "activations", "nodes", "depth")  # of the whole network
COUNT = "count "  # prefix of numbers of layers of a kind; " /" and the downsampling factor follow for a resolution
BESIDE = "beside "  # prefix of an operator with one or two neighbours
ROW = "row "  # prefix of an operator with all its attributes
OF_CONSTANTS: Features = {"nodes": 1.0}  # of a network whose output does not depend on its input
REMEMBERED = 4096  # kinds of operators whose labels are remembered
_CONV = "Conv"


def graph_features(canonical: Graph) -> dict[str, float]:
    """Return the features of a canonical graph by name; a count of 0 has no entry.

    Features: ``params``, ``macs``, ``activations``, ``nodes`` and ``depth``; ``count``, ``macs`` and ``params`` of each
    kind of layer; ``count`` and ``macs`` of each kind at each resolution; the logarithm of the number of paths, and the
    mean, variance and minimum of the number of convolutions on a path; walks; neighbours; and rows.

    Cost: some milliseconds.

    Example:
        >>> from spaces import get_space
        >>> space = get_space("nasbench201")
        >>> counts = graph_features(to_canonical_graph(to_graph(space, space.decode((3, 3, 3, 3, 3, 3)))))
        >>> counts["paths"] > 10, counts["walk Conv3x3 > Conv3x3"] > counts["count Conv3x3"]
        (True, True)
    """
    labels = [node_label(node) for node in canonical.nodes]
    operators = _operator_graph(canonical, labels)
    return {
        **_sizes(canonical, labels),
        **_paths(canonical, labels),
        **_named(WALK, walks(operators)),
        **_named(BESIDE, neighbours(operators)),
        **_rows(canonical),
    }


def features_of(
    space: SearchSpace[A],
    architectures: Sequence[A],
    *,
    compiled: bool = False,
    progress: bool = False,
) -> list[Features]:
    """Return ``graph_features`` of every architecture, in the order given; isomorphic ones are computed once.

    It is computed in a process per core, or in fewer if there is little work.

    Args:
        space: the search space.
        architectures: N architectures.
        compiled: use the graph that ``executed.compiled_graph`` leaves, in which isomorphic architectures may differ,
            instead of the canonical graph. Networks whose output does not depend on their input differ only in it.
        progress: show a bar on stderr.
    """
    name = space.format if compiled else space.architecture_key
    keys = [name(architecture) for architecture in architectures]
    distinct = dict(zip(reversed(keys), reversed(architectures), strict=True))
    count, todo = partial(_features, space, compiled), list(distinct.values())
    counted = in_chunks(count, todo, "count", unit="network", progress=progress)
    features = dict(zip(distinct, counted, strict=True))
    return [features[key] for key in keys]


def feature_matrix(rows: Sequence[Features]) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the features that two or more networks have, as log(1 + count).

    Args:
        rows: features of N networks.

    Returns:
        (N, F), and the F names, sorted.
    """
    occurs = Counter(name for row in rows for name in row)
    names = tuple(sorted(name for name, count in occurs.items() if count > 1))
    column = {name: index for index, name in enumerate(names)}
    values = np.zeros((len(rows), len(names)))
    for index, row in enumerate(rows):
        known = [name for name in row if name in column]
        values[index, [column[name] for name in known]] = [row[name] for name in known]
    return np.log1p(values), names


def feature_groups(rows: Sequence[Features]) -> list[FloatArray]:
    """Return features in groups, for kernels that weight the groups differently.

    Args:
        rows: features of N networks.

    Returns:
        Groups (N, F): sizes and counts, each feature standardised; walks of one or two operators, all walks,
        neighbours, and rows, each feature centred and the group scaled to a mean variance of 1. Empty groups are
        left out.
    """
    values, names = feature_matrix(rows)
    values = values - values.mean(axis=0)
    deviation = values.std(axis=0)
    varies = deviation > 0
    walks, beside, whole_rows = (
        varies & np.array([name.startswith(kind) for name in names], dtype=bool) for kind in (WALK, BESIDE, ROW)
    )
    counts = varies & ~walks & ~beside & ~whole_rows
    short = walks & np.array([name.count(" > ") < 2 for name in names], dtype=bool)
    together = [x for x in (short, walks, beside, whole_rows) if x.any()]
    groups = [values[:, counts] / deviation[counts]]
    groups += [values[:, x] / np.sqrt((deviation[x] ** 2).mean()) for x in together]
    return [group for group in groups if group.shape[1]]


def cost_groups(rows: Sequence[Features]) -> list[FloatArray]:
    """Return features that costs add up from, without logarithms: ``SIZES``, and numbers of operators of each kind.

    Args:
        rows: features of N networks.

    Returns:
        Two groups (N, F), each feature standardised; without those that are equal in all networks.
    """
    kinds = sorted({x for row in rows for x in row if x.startswith(COUNT) and " /" not in x})
    groups = []
    for names in (SIZES, kinds):
        values = np.array([[row.get(name, 0.0) for name in names] for row in rows], dtype=np.float64)
        values -= values.mean(axis=0)
        deviation = values.std(axis=0)
        groups.append(values[:, deviation > 0] / deviation[deviation > 0])
    return groups


def _features(space: SearchSpace[A], compiled: bool, architectures: Sequence[A]) -> list[Features]:
    graphs = [to_graph(space, architecture) for architecture in architectures]
    if compiled:
        return [graph_features(compiled_graph(graph)) for graph in graphs]
    return [_learnable_features(to_canonical_graph(graph)) for graph in graphs]


def _learnable_features(canonical: Graph) -> Features:
    """Return the features of a canonical graph; all graphs whose output ignores their input have the same ones.

    NOTE: such networks are all as accurate as chance. With features of what computes their constant output, searches of
    NAS-Bench-201 evaluated up to 20 of its 283 (docs/log.md, 2026-11-30).
    """
    constants = constant_values(canonical.nodes, canonical.inputs)
    return OF_CONSTANTS if constants.issuperset(canonical.outputs) else graph_features(canonical)


def node_label(node: Node) -> str:
    """Return the operator with its kernel size, such as ``Conv3x3`` or ``MaxPool3``, for a node.

    Suffixes s, g and d mark strides, groups and dilations above 1. Scaling by zero is a ``Zero``.
    """
    return _label(node.op_type, node.attributes)


@lru_cache(maxsize=REMEMBERED)
def _label(op_type: str, attributes: Attributes) -> str:
    given = dict(attributes)
    if given.get("factor") == 0.0:
        return "Zero"
    label = op_type.rpartition(".")[2].removesuffix("Bias")
    weight, kernel = given.get("weight_shape"), given.get("kernel_shape")
    size = ""
    if label == _CONV and isinstance(weight, tuple):
        size = "x".join(map(str, weight[2:]))
    elif isinstance(kernel, tuple):
        size = str(kernel[0])
    marks = "".join(
        mark
        for mark, name in (("s", "strides"), ("g", "group"), ("d", "dilations"))
        if _largest(given.get(name, 1)) > 1
    )
    return label + size + marks


def _largest(value: object) -> int:
    return max(value) if isinstance(value, tuple) else int(value) if isinstance(value, int) else 1


def _sizes(graph: Graph, labels: Sequence[str]) -> dict[str, float]:
    counts: Counter[str] = Counter(nodes=len(graph.nodes))
    width = graph.shapes[graph.inputs[0]][-1]
    layers = (
        (label, graph.shapes.get(node.outputs[0], ()), node.attribute("weight_shape"))
        for node, label in zip(graph.nodes, labels, strict=True)
    )
    for (label, shape, weight), times in Counter(layers).items():
        place = f"{label} /{round(width / shape[-1])}" if len(shape) == 4 else label
        counts["activations"] += times * prod(shape)
        for name in {label, place}:  # one name if there is no resolution
            counts[COUNT + name] += times
        if isinstance(weight, tuple) and len(weight) > 1:
            macs, params = times * prod(shape) * prod(map(int, weight[1:])), times * prod(map(int, weight))
            for name in ("params", f"params {label}"):
                counts[name] += params
            for name in {"macs", f"macs {label}", f"macs {place}"}:
                counts[name] += macs
    return {**counts, "depth": float(depth_of(graph.nodes))}


def _paths(graph: Graph, labels: Sequence[str]) -> dict[str, float]:
    """Return statistics of the number of convolutions on a path from input to output, over all paths."""
    moments = dict.fromkeys(graph.inputs, (0.0, 0.0, 0.0, 0.0))  # log of the paths, mean, variance, minimum
    for node, label in zip(graph.nodes, labels, strict=True):
        sources = [moments[x] for x in node.inputs if x in moments]
        if not sources:
            continue  # a constant
        number, mean, variance, minimum = sources[0] if len(sources) == 1 else mixed_paths(*zip(*sources, strict=True))
        step = float(label.startswith(_CONV))
        moments.update(dict.fromkeys(node.outputs, (number, mean + step, variance, minimum + step)))
    names = ("paths", "path mean", "path variance", "path minimum")
    return dict(zip(names, moments.get(graph.outputs[0], (0.0, 0.0, 0.0, 0.0)), strict=True))


def _operator_graph(graph: Graph, labels: Sequence[str]) -> OperatorGraph:
    """Return the graph of operators by which operator reads which, without the network's input and output."""
    sources: list[list[int]] = []
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        sources.append([producer[x] for x in node.inputs if x in producer])
        producer.update(dict.fromkeys(node.outputs, index))
    return OperatorGraph(labels, [label in PASSED for label in labels], sources)


def _named(kind: str, counts: Mapping[str, int]) -> dict[str, float]:
    return {kind + name: float(count) for name, count in counts.items()}


def _rows(graph: Graph) -> dict[str, float]:
    """Return how often each operator occurs with the same attributes."""
    times = Counter((node.op_type, node.attributes) for node in graph.nodes)
    rows: Counter[str] = Counter()
    for (op_type, attributes), number in times.items():
        rows[" ".join([op_type, *(f"{name}={value}" for name, value in attributes)])] += number
    return _named(ROW, rows)
