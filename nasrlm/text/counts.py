"""What the network of a canonical ONNX text is made of, as a vector of counts whose length is the same for all.

- Walks: up to four operators that follow one another on a path, sums and ReLUs left out.
- Neighbours: an operator with one or two of those before and after it.
- Rows: operators with all their attributes.
- Places: operators with how many times smaller than the network's input their output is.
- Sizes: numbers of paths, depths and weights.

They rank networks from few labels (docs/few-labels.md). ``studies.surrogates.features`` counts in graphs, this in
texts: of the network with every block written out, and apart from it of its blocks as they were executed. The name of
what is counted is hashed to its column, so nothing has to be learned beforehand.

N texts, C counts.
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
from nasrlm.text.bodies import Body
from nasrlm.text.network import AS_EXECUTED, CalledBody, read_written_out
from nasrlm.text.operator_graph import OperatorGraph
from nasrlm.text.remembered import remembered
from nasrlm.text.row_counts import LARGEST, num_pixels, times_smaller

NUM_STRUCTURES = 1024  # of walks and neighbours; 512 rank as well, 256 lose up to 0.01
NUM_ROWS = 512  # of rows as they stand, with all attributes
NUM_PLACES = 128  # of operators by their place in the network, and as many of their weights
NUM_PATH_NUMBERS = 6  # see ``paths``; of the network, and of its blocks as measured
NUM_WEIGHTS = 64  # of weights by operators, and of all together
NUM_SIZES = 2 * NUM_PATH_NUMBERS + NUM_WEIGHTS + 1
PARTS = (NUM_STRUCTURES, NUM_ROWS, 2 * NUM_PLACES, NUM_SIZES)
NUM_COUNTS = sum(PARTS)
NUM_TOTALS = 2 * NUM_PLACES + NUM_SIZES  # whose logarithms are taken of all bodies together
AT_PLACES = slice(NUM_STRUCTURES + NUM_ROWS, NUM_STRUCTURES + NUM_ROWS + NUM_PLACES)  # how often, without weights
LONGEST_WALK = 4  # 3, 5 and 6 rank NAS-Bench-201 no better
MOST_WALKS = 2_000  # names of one body, five times what any space has; of more none are counted: some would take hours
_WEIGHT = re.compile(r"(?:weight_shape=\[(\d+(?:,\d+)*)|(?:^|,)\[(\d+,\d+,\d+,\d+))\]")

Counts = Counter[str]


def text_counts(texts: Sequence[str]) -> FloatArray:
    """(N, C) logarithms of counts, parts as in ``PARTS``; zeros of a text that is not canonical ONNX.

    Cost: 2 to 8 milliseconds a text.
    """
    counts = np.zeros((len(texts), NUM_COUNTS))
    for row, text in zip(counts, texts, strict=True):
        for called in read_written_out(text):
            row += _remembered_counts(called) if called.is_executed else _counts(called)
    counts[:, -NUM_TOTALS:] = np.log1p(counts[:, -NUM_TOTALS:])
    return counts


def operator_counts(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """(N, F) logarithms of how often each operator occurs, those of blocks as executed apart; and (N,) of ``macs``."""
    counted: list[Counts] = [Counter() for _ in texts]
    logs = np.zeros(len(texts))
    for row, text in enumerate(texts):
        bodies = read_written_out(text)
        graphs = [OperatorGraph.of(called.body) for called in bodies]
        for called, graph in zip(bodies, graphs, strict=True):
            counted[row].update(f"{_kind(called)}{label}" for label in graph.labels[1:-1])
        logs[row] = log1p(macs(bodies[0].body, graphs[0])) if bodies else 0.0
    names = sorted({name for counts in counted for name in counts})
    return np.log1p([[float(counts[name]) for name in names] for counts in counted]), logs


def log_macs(texts: Sequence[str]) -> FloatArray:
    """(N,) logarithms of ``macs``, as ``operator_counts`` has them; 0 of a text that is not canonical ONNX."""
    bodies = [read_written_out(text) for text in texts]
    return np.array([log1p(macs(x[0].body, OperatorGraph.of(x[0].body))) if x else 0.0 for x in bodies])


def macs(body: Body, graph: OperatorGraph) -> float:
    """Multiply-accumulates of a network's layers, as far as strides and global pools tell their sizes."""
    total, pixels = 0.0, [num_pixels(body)]  # of the input, then of what each operator gives
    for line, sources in zip(body.lines, graph.sources[1:-1], strict=True):
        before = max((pixels[source] for source in sources), default=1.0)
        after = 1.0 if "Global" in line.op_type else before / times_smaller(line, 1.0) ** 2
        pixels.append(min(max(after, 1.0), LARGEST))
        total += pixels[-1] * _num_weights(line.attributes)
    return min(total, LARGEST)


def _kind(called: CalledBody) -> str:
    return AS_EXECUTED if called.is_executed else ""


def _counts(called: CalledBody) -> FloatArray:
    """(C,) of a body."""
    body, kind = called.body, _kind(called)
    graph = OperatorGraph.of(body)
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


_remembered_counts = lru_cache(maxsize=1024)(_counts)  # a space's texts share most bodies


def _of_places(names: Sequence[str], num_weights: Sequence[float]) -> FloatArray:
    """(2, NUM_PLACES) how many operators there are of each name, and their weights, hashed apart."""
    counted = np.zeros((2, NUM_PLACES))
    for name, number in zip(names, num_weights, strict=True):
        place, _ = _hash(name)
        counted[0, place % NUM_PLACES] += 1
        counted[1, place // NUM_PLACES % NUM_PLACES] += number
    return counted


def walks(graph: OperatorGraph) -> Counts:
    """How often each walk occurs, over all paths; none if more than ``MOST_WALKS`` different ones do."""
    total: Counts = Counter()
    ending: list[Sequence[Mapping[str, int]]] = []  # at an operator: walks that end there, by length
    for label, passed, sources in zip(graph.labels, graph.passed, graph.sources, strict=True):
        reached = _together([ending[source] for source in sources])
        if not passed:
            step = f" > {label}"
            longer = [{walk + step: count for walk, count in walks.items()} for walks in reached]
            reached = [{label: 1}, *longer[:-1]]
            for walks in (reached[0], *longer):
                for walk, count in walks.items():
                    total[walk] += count
        if len(total) > MOST_WALKS:
            return Counter()
        ending.append(reached)
    return total


def paths(graph: OperatorGraph) -> Sequence[float]:
    """Six numbers about the paths to the output, from the input or from a constant.

    The logarithm of how many there are; mean, variance and minimum of the number of convolutions on a path; how many
    operators the longest has; and how many there are in all.
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
    """The paths of several values together: their number (logarithm), mean, variance and minimum."""
    most = max(numbers)
    shares = [exp(number - most) for number in numbers]
    total = sum(shares)
    mean = sum(map(mul, shares, means)) / total
    squares = sum(share * (x + y * y) for share, x, y in zip(shares, variances, means, strict=True)) / total
    return most + log(total), mean, max(squares - mean**2, 0.0), min(minima)


def places(body: Body, graph: OperatorGraph) -> Sequence[str]:
    """Name every operator with its place: ``Conv3x3 /4`` gives an output four times smaller than the input.

    Only strides are looked at, its own and those before it.
    """
    times = [1.0]  # smaller than the input
    for line, sources in zip(body.lines, graph.sources[1:-1], strict=True):
        before = max((times[source] for source in sources), default=1.0)
        times.append(times_smaller(line, before))
    return [f"{label} /{smaller:g}" for label, smaller in zip(graph.labels[1:-1], times[1:], strict=True)]


def neighbours(graph: OperatorGraph) -> Counts:
    """How often an operator stands beside one other, or between two, before or after it."""
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
    """Walks that end at any of some operators, by length; those of one are its own, which nobody changes."""
    if len(endings) == 1:
        return endings[0]
    merged: list[dict[str, int]] = [{} for _ in range(LONGEST_WALK - 1)]
    for ending in endings:
        for walks, more in zip(merged, ending, strict=True):
            for walk, count in more.items():
                walks[walk] = walks.get(walk, 0) + count
    return merged


@remembered
def _num_weights(attributes: str) -> float:
    """Numbers in the weights of a layer, or in those that a call gives."""
    number = sum(prod(map(float, (layer or call).split(","))) for layer, call in _WEIGHT.findall(attributes))
    return min(number, LARGEST)


@partial(remembered, size=65_536)
def _hash(name: str) -> tuple[int, int]:
    """Where a name is counted, and with which sign."""
    digest = zlib.crc32(name.encode())
    return digest >> 1, 1 if digest & 1 else -1
