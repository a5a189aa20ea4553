"""Architectures to learn from: drawn at random, each with the split that it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spaces.space import ArchitectureError, Genotype, SearchSpace

Sample = Callable[[np.random.Generator], Any]  # an architecture, drawn at random

TRIES = 1000  # genotypes in a row that are no architecture
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
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    for _ in range(count):
        architecture = (sample or space.sample)(rng)
        notation = space.format(architecture)
        if notation not in seen:
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
