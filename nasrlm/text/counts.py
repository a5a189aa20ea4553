"""Count the parts of a network given as canonical ONNX text, in a vector of fixed length.

- Walks: up to four consecutive operators on a path; sums, ReLUs and other operators in ``operator_graph.PASSED`` are
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

import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations_with_replacement
from math import exp, log, log1p, prod
from operator import mul

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.text.bodies import Body, Line
from nasrlm.text.network import AS_EXECUTED, CalledBody, read_written_out
from nasrlm.text.operator_graph import NO_OPERATORS, OperatorGraph, operator_label
from nasrlm.text.remembered import remembered
from nasrlm.text.row_counts import LARGEST, num_pixels, times_smaller

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
_WEIGHT = re.compile(r"(?:weight_shape=\[(\d+(?:,\d+)*)|(?:^|,)\[(\d+,\d+,\d+,\d+))\]")

Counts = Counter[str]


def text_counts(texts: Sequence[str]) -> FloatArray:
    """Return the (N, C) logarithms of counts, in parts of sizes ``PARTS``; zeros for text that is not canonical ONNX.

    Counts of walks, neighbours and rows have signs from a hash, so that names in the same column cancel on average.

    Cost: 2 to 8 milliseconds per text.
    """
    counts = np.zeros((len(texts), NUM_COUNTS))
    for row, text in zip(counts, texts, strict=True):
        row[:] = _log_counts(*_read(text))
    return counts


def counts_and_sizes(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return the (N, C) ``text_counts`` and the (N, 3) ``log_sizes``, with each text read once."""
    counts, sizes = np.zeros((len(texts), NUM_COUNTS)), np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in enumerate(texts):
        bodies, graph = _read(text)
        counts[row], sizes[row] = _log_counts(bodies, graph), _log_sizes(bodies, graph)
    return counts, sizes


def operator_counts(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return (N, F) logarithms of operator counts, and the (N, 3) ``log_sizes``.

    The F columns are the operators that occur in these texts, in alphabetical order; executed blocks are counted
    separately.
    """
    counted: list[Counts] = [Counter() for _ in texts]
    sizes = np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in enumerate(texts):
        bodies, graph = _read(text)
        for called in bodies:
            counted[row].update(f"{_kind(called)}{operator_label(line)}" for line in called.body.lines)
        sizes[row] = _log_sizes(bodies, graph)
    names = sorted({name for counts in counted for name in counts})
    return np.log1p([[float(counts[name]) for name in names] for counts in counted]), sizes


def log_sizes(texts: Sequence[str]) -> FloatArray:
    """Return the (N, 3) logarithms of ``layer_sizes``; 0 for text that is not canonical ONNX."""
    sizes = np.zeros((len(texts), NUM_LOG_SIZES))
    for row, text in zip(sizes, texts, strict=True):
        row[:] = _log_sizes(*_read(text))
    return sizes


def layer_sizes(body: Body, graph: OperatorGraph) -> tuple[float, float, float]:
    """Estimate a network's multiply-accumulates and activations, and count its operators, without executed blocks.

    Activations are the values in the outputs of all operators, whose sizes follow from strides and global pools alone,
    and whose channels follow from weights and concatenations.

    NOTE: ``activations@onnx`` counts outputs of convolutions alone. All outputs rank speeds better: throughput on an
    A100 in MnasNet at a τ of 0.95 instead of 0.87, and multiply-accumulates at 0.66.
    """
    macs, activations = 0.0, 0.0
    pixels, channels = [num_pixels(body)], [1.0]  # of the input, then of each operator's output
    for line, sources in zip(body.lines, graph.sources[1:-1], strict=True):
        before = max((pixels[source] for source in sources), default=1.0)
        after = 1.0 if "Global" in line.op_type else before / times_smaller(line, 1.0) ** 2
        pixels.append(min(max(after, 1.0), LARGEST))
        channels.append(_num_channels(line, [channels[source] for source in sources]))
        macs += pixels[-1] * _num_weights(line.attributes)
        activations += pixels[-1] * channels[-1]
    return min(macs, LARGEST), min(activations, LARGEST), len(body.lines)


def _num_channels(line: Line, before: Sequence[float]) -> float:
    """Return the number of channels of a line's output, given those of its inputs."""
    if weighted := _WEIGHT.search(line.attributes):
        return min(float((weighted[1] or weighted[2]).split(",")[0]), LARGEST)
    return min(sum(before) if line.op_type == "Concat" else max(before, default=1.0), LARGEST)


def _read(text: str) -> tuple[Sequence[CalledBody], OperatorGraph]:
    """Return the bodies of a text, none if it is not canonical ONNX, and the operators of the first one."""
    bodies = read_written_out(text)
    return bodies, OperatorGraph.of(bodies[0].body) if bodies else NO_OPERATORS


def _log_counts(bodies: Sequence[CalledBody], graph: OperatorGraph) -> FloatArray:
    """Return the (C,) logarithms of counts of all bodies."""
    counts = np.zeros(NUM_COUNTS)
    if bodies:
        counts += _counts(bodies[0], graph)
    for called in bodies[1:]:
        counts += _counts_of_other(called)
    counts[-NUM_TOTALS:] = np.log1p(counts[-NUM_TOTALS:])
    return counts


def _log_sizes(bodies: Sequence[CalledBody], graph: OperatorGraph) -> FloatArray:
    """Return the (3,) logarithms of ``layer_sizes``."""
    return np.log1p(layer_sizes(bodies[0].body, graph) if bodies else np.zeros(NUM_LOG_SIZES))


def _kind(called: CalledBody) -> str:
    return AS_EXECUTED if called.is_executed else ""


@lru_cache(maxsize=1024)  # a space's texts share most blocks
def _counts_of_other(called: CalledBody) -> FloatArray:
    return _counts(called, OperatorGraph.of(called.body))


def _counts(called: CalledBody, graph: OperatorGraph) -> FloatArray:
    """Count a body: (C,), of which the last ``NUM_TOTALS`` are not yet logarithms."""
    body, kind = called.body, _kind(called)
    structures, rows, weights = [0.0] * NUM_STRUCTURES, [0.0] * NUM_ROWS, [0.0] * NUM_WEIGHTS
    for name, count in (walks(graph) + neighbours(graph)).items():
        place, sign = _hash(kind + name)
        structures[place % NUM_STRUCTURES] += sign * log1p(min(count, LARGEST))
    for name, count in Counter(line.operator for line in body.lines).items():
        place, sign = _hash(kind + name)
        rows[place % NUM_ROWS] += sign * log1p(count)
    num_weights = [_num_weights(line.attributes) for line in body.lines]
    for label, number in zip(graph.labels[1:-1], num_weights, strict=True):
        weights[_hash(kind + label)[0] % NUM_WEIGHTS] += number
    numbers = np.zeros((2, NUM_PATH_NUMBERS))
    numbers[int(called.is_executed)] = paths(graph)
    of_places = np.zeros((2, NUM_PLACES)) if called.is_executed else _of_places(places(body, graph), num_weights)
    sizes = [*numbers.flatten(), *weights, sum(weights)]
    return np.concatenate([structures, rows, of_places.flatten(), sizes])


def _of_places(names: Sequence[str], num_weights: Sequence[float]) -> FloatArray:
    """Return (2, NUM_PLACES) numbers of operators by name, and of their weights, with different hashes."""
    counted = np.zeros((2, NUM_PLACES))
    for name, number in zip(names, num_weights, strict=True):
        place, _ = _hash(name)
        counted[0, place % NUM_PLACES] += 1
        counted[1, place // NUM_PLACES % NUM_PLACES] += number
    return counted


def walks(graph: OperatorGraph) -> Counts:
    """Count each walk on all paths; return no counts if there are more than ``MOST_WALKS`` different walks."""
    total: Counts = Counter()
    ending: list[Sequence[Mapping[str, int]]] = []  # by operator: walks that end there, by length
    for label, passed, sources in zip(graph.labels, graph.passed, graph.sources, strict=True):
        reached = _together([ending[source] for source in sources])
        if not passed:
            step = f" > {label}"
            longer = [{walk + step: count for walk, count in counts.items()} for counts in reached]
            reached = [{label: 1}, *longer[:-1]]
            for counts in (reached[0], *longer):
                _add(total, counts)
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


def places(body: Body, graph: OperatorGraph) -> Sequence[str]:
    """Return each operator's name with its place: the output of ``Conv3x3 /4`` is four times smaller than the input.

    Sizes follow from the strides of the operator and of those before it; nothing else is considered.
    """
    times = [1.0]  # by how many times outputs are smaller than the input
    for line, sources in zip(body.lines, graph.sources[1:-1], strict=True):
        before = max((times[source] for source in sources), default=1.0)
        times.append(times_smaller(line, before))
    return [f"{label} /{smaller:g}" for label, smaller in zip(graph.labels[1:-1], times[1:], strict=True)]


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
    """Add up the walks that end at any of several operators, by length."""
    if len(endings) == 1:
        return endings[0]  # no copy is needed, as nobody changes it
    merged: list[dict[str, int]] = [{} for _ in range(LONGEST_WALK - 1)]
    for ending in endings:
        for counts, more in zip(merged, ending, strict=True):
            _add(counts, more)
    return merged


def _add(total: dict[str, int], counts: Mapping[str, int]) -> None:
    """Add counts to a total; faster than ``Counter.update`` for the few walks that end at an operator."""
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count


@remembered
def _num_weights(attributes: str) -> float:
    """Return the number of weights of a layer, or of a weight shape among the arguments of a call."""
    number = sum(prod(map(float, (layer or call).split(","))) for layer, call in _WEIGHT.findall(attributes))
    return min(number, LARGEST)


@partial(remembered, size=65_536)
def _hash(name: str) -> tuple[int, int]:
    """Return a hash from which the column of a name is computed, and the sign with which it is counted."""
    digest = zlib.crc32(name.encode())
    return digest >> 1, 1 if digest & 1 else -1
