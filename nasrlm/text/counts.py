"""Count the parts of a network given as canonical ONNX text, in a vector of fixed length.

- Walks: up to four consecutive operators on a path; sums, ReLUs and other operators in ``operators.PASSED`` are
  skipped.
- Neighbours: an operator with one or two of the operators that it reads or that read it.
- Rows: operators with all their attributes.
- Places: operators with the factor by which their output is smaller than the network's input.
- Sizes: numbers of paths, depths and weights.

Models on these counts rank networks from few labels (docs/few-labels.md). ``studies.surrogates.features`` counts the
same in graphs. Here the network is counted with every block written out, and its executed blocks are counted
separately. Each counted item is assigned to a column by a hash of its name, so no vocabulary is needed.

N texts, C counts, F names of operators.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import exp, log, log1p
from operator import mul

import numpy as np
from numpy.typing import NDArray

from nasrlm.arrays import FloatArray
from nasrlm.text.network import AS_EXECUTED, read_written_out
from nasrlm.text.operator_graph import BodyGraph, OperatorGraph
from nasrlm.text.operators import LARGEST, Operator
from nasrlm.text.remembered import remembered

NUM_STRUCTURES = 1024  # columns of walks and neighbours; 512 rank as well, with 256 τ is up to 0.01 lower
NUM_ROWS = 512  # columns of rows
NUM_PLACES = 128  # columns of operators by place, and again of their numbers of weights
NUM_PATH_NUMBERS = 6  # see ``paths``; once for the network and once for its executed blocks
NUM_WEIGHTS = 64  # columns of numbers of weights by operator; one more has their total
NUM_SIZES = 2 * NUM_PATH_NUMBERS + NUM_WEIGHTS + 1
PARTS = (NUM_STRUCTURES, NUM_ROWS, 2 * NUM_PLACES, NUM_SIZES)
NUM_COUNTS = sum(PARTS)
NUM_LOG_SIZES = 3  # multiply-accumulates, activations, operators
NUM_TOTALS = 2 * NUM_PLACES + NUM_SIZES  # last columns: summed over all bodies before the logarithm is taken
AT_PLACES = slice(NUM_STRUCTURES + NUM_ROWS, NUM_STRUCTURES + NUM_ROWS + NUM_PLACES)  # columns of operators by place
LONGEST_WALK = 4  # 3, 5 and 6 rank NAS-Bench-201 no better
MOST_WALKS = 2_000  # different walks of a body, five times what any space has; counting more could take hours

Counts = Counter[str]


def text_counts(texts: Sequence[str]) -> FloatArray:
    """Return the (N, C) logarithms of counts, in parts of sizes ``PARTS``; zeros for text that is not canonical ONNX.

    Counts of walks, neighbours and rows have signs from a hash, so that names in the same column cancel on average.

    Cost: 1 to 6 milliseconds per text.
    """
    counts = np.zeros((len(texts), NUM_COUNTS))
    for row, text in zip(counts, texts, strict=True):
        row[:] = _log_counts(read_written_out(text))
    return counts


def counts_and_sizes(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return the (N, C) ``text_counts`` and the (N, 3) ``log_sizes``, with each text read once."""
    counts, sizes = np.zeros((len(texts), NUM_COUNTS)), np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in enumerate(texts):
        graphs = read_written_out(text)
        counts[row], sizes[row] = _log_counts(graphs), _log_sizes(graphs)
    return counts, sizes


def operator_counts(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return (N, F) logarithms of operator counts, and the (N, 3) ``log_sizes``.

    The F columns are the operators that occur in these texts, in alphabetical order; executed blocks are counted
    separately.
    """
    counted: list[Counts] = [Counter() for _ in texts]
    sizes = np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in enumerate(texts):
        graphs = read_written_out(text)
        for graph in graphs:
            counted[row].update(f"{_kind(graph)}{operator.label}" for operator in graph.operators)
        sizes[row] = _log_sizes(graphs)
    names = sorted({name for counts in counted for name in counts})
    return np.log1p([[float(counts[name]) for name in names] for counts in counted]), sizes


def log_sizes(texts: Sequence[str]) -> FloatArray:
    """Return the (N, 3) logarithms of ``layer_sizes``; 0 for text that is not canonical ONNX."""
    sizes = np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in zip(sizes, texts, strict=True):
        row[:] = _log_sizes(read_written_out(text))
    return sizes


def layer_sizes(graph: BodyGraph) -> tuple[float, float, float]:
    """Estimate a network's multiply-accumulates and activations, and count its operators, without executed blocks.

    Activations are the values in the outputs of all operators, whose sizes follow from strides and global pools alone,
    and whose channels follow from weights and concatenations.

    NOTE: ``activations@onnx`` counts outputs of convolutions alone. All outputs rank speeds better: throughput on an
    A100 in MnasNet at a τ of 0.95 instead of 0.87, and multiply-accumulates at 0.66.
    """
    macs, activations = 0.0, 0.0
    pixels, channels = [graph.num_pixels], [1.0]  # of the input, then of each operator's output
    for operator, sources in zip(graph.operators, graph.sources[1:-1], strict=True):
        before = max((pixels[source] for source in sources), default=1.0)
        after = 1.0 if "Global" in operator.op_type else before / operator.times_smaller(1.0) ** 2
        pixels.append(min(max(after, 1.0), LARGEST))
        channels.append(_num_channels(operator, [channels[source] for source in sources]))
        macs += pixels[-1] * operator.num_weights
        activations += pixels[-1] * channels[-1]
    return min(macs, LARGEST), min(activations, LARGEST), len(graph.operators)


def _num_channels(operator: Operator, before: Sequence[float]) -> float:
    """Return the number of channels of an operator's output, given those of its inputs."""
    if operator.num_filters is not None:
        return operator.num_filters
    return min(sum(before) if operator.op_type == "Concat" else max(before, default=1.0), LARGEST)


def _log_counts(graphs: Sequence[BodyGraph]) -> FloatArray:
    """Return the (C,) logarithms of counts of all bodies of a text."""
    counts = np.zeros(NUM_COUNTS)
    if graphs:
        counts += _counts(graphs[0])
    for graph in graphs[1:]:
        counts += _counts_again(graph)
    counts[-NUM_TOTALS:] = np.log1p(counts[-NUM_TOTALS:])
    return counts


def _log_sizes(graphs: Sequence[BodyGraph]) -> FloatArray:
    """Return the (3,) logarithms of ``layer_sizes``."""
    return np.log1p(layer_sizes(graphs[0]) if graphs else np.zeros(NUM_LOG_SIZES))


def _kind(graph: BodyGraph) -> str:
    return AS_EXECUTED if graph.is_executed else ""


def _counts(graph: BodyGraph) -> FloatArray:
    """Count a body: (C,), of which the last ``NUM_TOTALS`` are not yet logarithms."""
    kind = _kind(graph)
    structures, rows = walks(graph), Counter([operator.spelled for operator in graph.operators])
    _add(structures, neighbours(graph))
    num_weights = [operator.num_weights for operator in graph.operators]
    weights = np.bincount(_hashes(graph.labels[1:-1], kind) % NUM_WEIGHTS, num_weights, NUM_WEIGHTS)
    numbers = np.zeros((2, NUM_PATH_NUMBERS))
    numbers[int(graph.is_executed)] = paths(graph)
    of_places = np.zeros(2 * NUM_PLACES) if graph.is_executed else _of_places(places(graph), num_weights)
    signed = _signed_logarithms(structures, kind, NUM_STRUCTURES), _signed_logarithms(rows, kind, NUM_ROWS)
    return np.concatenate([*signed, of_places, numbers.ravel(), weights, [weights.sum()]])


def _signed_logarithms(counts: Counts, kind: str, columns: int) -> FloatArray:
    """Return the (columns,) sums of the logarithms of counts, with signs from hashes of their names."""
    digests = _digests(counts, kind)
    logarithms = np.array([log1p(min(count, LARGEST)) for count in counts.values()])
    signed = np.where(digests & 1, logarithms, -logarithms)
    return np.asarray(np.bincount((digests >> 1) % columns, signed, columns), dtype=np.float64)


_counts_again = lru_cache(maxsize=1024)(_counts)  # a space's texts share most blocks


def _of_places(names: Sequence[str], num_weights: Sequence[float]) -> FloatArray:
    """Return (2 NUM_PLACES,) numbers of operators by name, then of their weights, with different hashes."""
    hashes = _hashes(names)
    operators = np.bincount(hashes % NUM_PLACES, np.ones(len(names)), NUM_PLACES)
    return np.concatenate([operators, np.bincount(hashes // NUM_PLACES % NUM_PLACES, num_weights, NUM_PLACES)])


def walks(graph: OperatorGraph) -> Counts:
    """Count each walk on all paths; return no counts if there are more than ``MOST_WALKS`` different walks."""
    total: Counts = Counter()
    ending: list[Sequence[Mapping[str, int]]] = []  # by operator: walks that end there, by length
    for label, passed, sources in zip(graph.labels, graph.passed, graph.sources, strict=True):
        reached = ending[sources[0]] if len(sources) == 1 else _together([ending[x] for x in sources])
        if not passed:
            step = f" > {label}"
            total[label] = total.get(label, 0) + 1
            longer: list[Mapping[str, int]] = [{label: 1}]
            for counts in reached:
                longer.append(further := {walk + step: count for walk, count in counts.items()})
                _add(total, further)
            reached = longer[:-1]
        if len(total) > MOST_WALKS:
            return Counter()
        ending.append(reached)
    return total


def paths(graph: OperatorGraph) -> Sequence[float]:
    """Return six numbers about the paths from the input, or from a constant, to the output.

    These are the logarithm of the number of paths; mean, variance and minimum of the number of convolutions on a path;
    the number of operators on the longest path; and the number of operators in all.
    """
    reached = [(0.0, 0.0, 0.0, 0.0, 0.0)]
    for label, sources in zip(graph.labels[1:], graph.sources[1:], strict=True):
        step = float(label.startswith("Conv"))
        if len(sources) < 2:
            number, mean, variance, minimum, depth = reached[sources[0] if sources else 0]
            reached.append((number, mean + step, variance, minimum + step, depth + 1))
            continue
        *moments, depths = zip(*(reached[x] for x in sources), strict=True)
        number, mean, variance, minimum = mixed_paths(*moments)
        reached.append((number, mean + step, variance, minimum + step, max(depths) + 1))
    return (*reached[-1], len(graph.labels))


def mixed_paths(
    numbers: Sequence[float], means: Sequence[float], variances: Sequence[float], minima: Sequence[float]
) -> tuple[float, float, float, float]:
    """Combine statistics of the paths to several values: log number of paths, then moments of their convolutions.

    Args:
        numbers: logarithm of the number of paths, by value.
        means: mean number of convolutions on a path, likewise.
        variances: variance likewise.
        minima: minimum likewise.

    Returns:
        The same four statistics of all paths together.
    """
    most = max(numbers)
    shares = [exp(number - most) for number in numbers]
    total = sum(shares)
    mean = sum(map(mul, shares, means)) / total
    squares = sum(share * (x + y * y) for share, x, y in zip(shares, variances, means, strict=True)) / total
    return most + log(total), mean, max(squares - mean**2, 0.0), min(minima)


def places(graph: BodyGraph) -> Sequence[str]:
    """Return each operator's name with its place: the output of ``Conv3x3 /4`` is four times smaller than the input.

    Sizes follow from the strides of the operator and of those before it; nothing else is considered.
    """
    times = [1.0]  # by how many times outputs are smaller than the input
    for operator, sources in zip(graph.operators, graph.sources[1:-1], strict=True):
        before = times[sources[0]] if len(sources) == 1 else max([times[x] for x in sources], default=1.0)
        times.append(operator.times_smaller(before))
    return [_place(label, smaller) for label, smaller in zip(graph.labels[1:-1], times[1:], strict=True)]


@remembered
def _place(label: str, smaller: float) -> str:
    return f"{label} /{smaller:g}"


def neighbours(graph: OperatorGraph) -> Counts:
    """Count pairs of an operator and a neighbour, and triples of an operator and two of its neighbours.

    Names tell whether a neighbour comes before (<) or after (>) the operator.
    """
    before, after = ([f"{sign} {label}" for label in graph.labels] for sign in "<>")
    beside: list[list[str]] = [[] for _ in graph.labels]
    for number, sources in enumerate(graph.sources):
        for source in sources:
            beside[number].append(before[source])
            beside[source].append(after[number])
    total: Counts = Counter()
    alike = Counter((label, *sorted(kinds)) for label, kinds in zip(graph.labels, beside, strict=True))
    for (label, *kinds), times in alike.items():
        counts = Counter(kinds)
        for kind, count in counts.items():
            total[f"{label} {kind}"] += count * times
        for (kind, count), (other, others) in combinations_with_replacement(counts.items(), 2):
            if pairs := count * others if kind != other else count * (count - 1) // 2:
                total[f"{label} {kind} {other}"] += pairs * times
    return total


def _together(endings: Sequence[Sequence[Mapping[str, int]]]) -> Sequence[Mapping[str, int]]:
    """Add up the walks that end at any of some operators, by length."""
    merged: list[dict[str, int]] = [{} for _ in range(LONGEST_WALK - 1)]
    for ending in endings:
        for counts, more in zip(merged, ending, strict=True):
            _add(counts, more)
    return merged


def _add(total: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to a total; faster than ``Counter.update`` for the few walks that end at an operator."""
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count


def _hashes(names: Sequence[str], kind: str = "") -> NDArray[np.int64]:
    """Return (len(names),) hashes from which columns are computed, of names that repeat."""
    number = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return (_digests(number, kind) >> 1)[[number[name] for name in names]]


def _digests(names: Iterable[str], kind: str) -> NDArray[np.int64]:
    """Return a hash of each name with its kind; the last bit is for a sign, the others are for a column."""
    return np.array([zlib.crc32((kind + name).encode()) for name in names], dtype=np.int64)
