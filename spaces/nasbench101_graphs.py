"""Graphs of NAS-Bench-101: pruning, the official hash, and the enumeration of isomorphism classes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain, combinations, permutations, product

MAX_VERTICES = 7
MAX_EDGES = 9
EDGES = tuple(combinations(range(MAX_VERTICES), 2))  # (source, target), the upper triangle row by row

Adjacency = tuple[tuple[int, ...], ...]  # (V, V) 0 or 1; row u, column v is the edge from u to v
Bits = tuple[int, ...]  # 0 or 1 for each of EDGES
Permutation = tuple[int, ...]  # new position of every vertex

_WEIGHT = {edge: 1 << (len(EDGES) - 1 - index) for index, edge in enumerate(EDGES)}


def on_paths(adjacency: Sequence[Sequence[int]]) -> list[int]:
    """Return the vertices on paths from the first vertex to the last, ascending; empty if there is no path."""
    last = len(adjacency) - 1
    reached, reaching = {0}, {last}
    for vertex in range(1, last + 1):
        if any(adjacency[source][vertex] for source in reached):
            reached.add(vertex)
    for vertex in range(last - 1, -1, -1):
        if any(adjacency[vertex][target] for target in reaching):
            reaching.add(vertex)
    return sorted(reached & reaching)


@lru_cache(maxsize=1 << 16)  # takes 0.3 ms, and a search needs the hashes of its table's modules repeatedly
def module_hash(adjacency: Adjacency, labels: tuple[int, ...]) -> str:
    """Return the hash that identifies a module in the published files; it is equal for isomorphic modules.

    Args:
        adjacency: (V, V) of a pruned module.
        labels: (V,) -1 for the input, -2 for the output, and the index of the operation for interior vertices.

    Source:
        hash_module in google-research/nasbench, nasbench/lib/graph_util.py: V rounds, in each of which the MD5 digest
        of a vertex is updated with those of its sources and targets; no two of the 423,624 modules collide.
    """
    vertices = range(len(adjacency))
    sources = [[u for u in vertices if adjacency[u][v]] for v in vertices]
    targets = [[u for u in vertices if adjacency[v][u]] for v in vertices]
    digests = [_md5(str((len(targets[v]), len(sources[v]), labels[v]))) for v in vertices]
    for _ in vertices:
        digests = [
            _md5(f"{_joined(digests, sources[v])}|{_joined(digests, targets[v])}|{digests[v]}") for v in vertices
        ]
    return _md5(str(sorted(digests)))


def graph_classes() -> Iterator[tuple[Bits, tuple[Permutation, ...]]]:
    """Yield one unlabelled graph of every isomorphism class, that with the first bits in lexicographic order.

    Interior vertices have the positions 1, 2, ... without gaps, and the output has the last position.

    Yields:
        The bits of EDGES, and the automorphisms: interior vertex i + 1 moves to permutation[i].
    """
    for bits, interior in merge(*map(_packed_graphs, range(MAX_VERTICES - 1))):
        automorphisms = _automorphisms([edge for edge, bit in zip(EDGES, bits, strict=True) if bit], interior)
        if automorphisms:
            yield bits, automorphisms


def labellings(num_vertices: int, num_labels: int, automorphisms: Sequence[Permutation]) -> Iterator[tuple[int, ...]]:
    """Yield labels of the interior vertices; of those that automorphisms map onto each other only the first."""
    for labels in product(range(num_labels), repeat=num_vertices):
        if all(labels <= tuple(labels[place - 1] for place in places) for places in automorphisms):
            yield labels


def _packed_graphs(interior: int) -> Iterator[tuple[Bits, int]]:
    """Yield bits of graphs in which all interior vertices have sources and targets, and the number of the vertices."""
    output = MAX_VERTICES - 1
    everyone = {*range(1, interior + 1), output}
    for rows in product(*(_rows(source, interior) for source in range(output))):
        bits = tuple(chain(*rows))
        if sum(bits) <= MAX_EDGES and {target for (_, target), bit in zip(EDGES, bits, strict=True) if bit} == everyone:
            yield bits, interior


def _rows(source: int, interior: int) -> list[Bits]:
    """Return the rows of a source vertex with at least one target; a row of zeros for vertices that do not exist."""
    targets = range(source + 1, MAX_VERTICES)
    choices = [(0, 1) if target in (*range(interior + 1), MAX_VERTICES - 1) else (0,) for target in targets]
    return [row for row in product(*choices) if any(row)] if source <= interior else [(0,) * len(targets)]


def _automorphisms(edges: Sequence[tuple[int, int]], interior: int) -> tuple[Permutation, ...]:
    """Return the permutations of the interior vertices that do not change a graph's bits.

    The result is empty if a permutation gives smaller bits, because then another graph represents the class.
    """
    value = sum(_WEIGHT[edge] for edge in edges)
    found: list[Permutation] = []
    for places in permutations(range(1, interior + 1)):
        image = _image(edges, (0, *places, *range(interior + 1, MAX_VERTICES)))
        if image is not None and image < value:
            return ()
        if image == value:
            found.append(places)
    return tuple(found)


def _image(edges: Sequence[tuple[int, int]], places: Permutation) -> int | None:
    """Return the bits after a permutation as a number; None if an edge would run backwards."""
    total = 0
    for source, target in edges:
        weight = _WEIGHT.get((places[source], places[target]))
        if weight is None:
            return None
        total += weight
    return total


def _joined(digests: Sequence[str], vertices: Iterable[int]) -> str:
    return "".join(sorted(digests[vertex] for vertex in vertices))


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
