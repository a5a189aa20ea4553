"""Architectures to learn from: drawn at random, each with the split that it belongs to."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spaces.space import ArchitectureError, Genotype, SearchSpace

Sample = Callable[[np.random.Generator], Any]  # an architecture, drawn at random

TRIES = 1000  # genotypes in a row that are no architecture, or none that is new
PATIENCE = 10  # draws for each that was found: one that is as likely as these is missed with a chance of exp(-10)
POOL = 1500  # networks beside those that are measured, to adapt to a device
HELD_OUT_PERCENT = 5  # of the networks are for validation and as many for tests; the others are for training


class Drawn(NamedTuple):
    """An architecture in its space's notation, and "train", "valid" or "test"."""

    architecture: str
    split: str


def draw(
    space: SearchSpace[Any],
    count: int,
    seed: int,
    sample: Sample | None = None,
    held_out_percent: int = HELD_OUT_PERCENT,
) -> Iterator[Drawn]:
    """The different architectures among ``count`` draws, each with its split.

    The split depends on the ``architecture_key`` alone: isomorphic architectures share it, and so do those of other
    seeds.

    Args:
        space: writes notations and keys.
        count: draws; fewer architectures where some are drawn again.
        seed: of the draws.
        sample: draws; ``space.sample`` if None.
        held_out_percent: of the networks that are "valid", and that are "test".
    """
    draws = _draws(space, seed, sample or space.sample, held_out_percent)
    yield from filter(None, itertools.islice(draws, count))


def draw_different(
    space: SearchSpace[Any], count: int, seed: int, held_out_percent: int = HELD_OUT_PERCENT
) -> Iterator[Drawn]:
    """``count`` different architectures, each with its split, the first of them as ``draw`` gives them.

    Fewer where the space has no more, or hardly ever draws them: where TRIES draws in a row, and PATIENCE times as many
    as were found, gave no new one.
    """
    found = repeats = 0
    if min(count, space.size) < 1:
        return
    for drawn in _draws(space, seed, space.sample, held_out_percent):
        if drawn is None:
            repeats += 1
        else:
            found, repeats = found + 1, 0
            yield drawn
        if found == min(count, space.size) or repeats > max(TRIES, PATIENCE * found):
            return


def _draws(space: SearchSpace[Any], seed: int, sample: Sample, held_out_percent: int) -> Iterator[Drawn | None]:
    """Draws without end, None for those that are drawn again."""
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    while True:
        architecture = sample(rng)
        notation = space.format(architecture)
        if notation in seen:
            yield None
            continue
        seen.add(notation)
        key = space.architecture_key(architecture)
        yield Drawn(notation, split_of(key, held_out_percent, held_out_percent))


def sample_like(space: SearchSpace[Any], given: Sequence[Genotype]) -> Sample:
    """Draws with the choices of the given architectures, each as often as they make it.

    Published tables often have a part of their space, or more than is sampled. Each choice is drawn by itself, but
    those that all of them make alike, such as those of two equal cells, are drawn together.

    Raises:
        ValueError: none are given.
        ArchitectureError: when drawing, where hardly any such choices go together.
    """
    if not len(given):
        raise ValueError(f"{space.name}: expected architectures to draw like, got none.")
    genotypes = np.array(given)
    columns = np.arange(genotypes.shape[1])
    first: dict[bytes, int] = {}
    leaders = [first.setdefault(column.tobytes(), index) for index, column in enumerate(genotypes.T)]

    def sample(rng: np.random.Generator) -> Any:
        for _ in range(TRIES):
            rows = rng.integers(len(genotypes), size=len(columns))
            try:
                return space.decode(genotypes[rows[leaders], columns].tolist())
            except ArchitectureError:
                continue
        raise ArchitectureError(f"{space.name}: expected architectures, got none of {TRIES} draws like those given.")

    return sample


def split_of(key: str, valid: int, test: int) -> str:
    """The split of everything with this key: "valid" and "test" for so many percent of all keys, else "train"."""
    percentile = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % 100
    if percentile < valid:
        return "valid"
    return "test" if percentile < valid + test else "train"
