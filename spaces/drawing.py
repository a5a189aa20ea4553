"""Samples architectures to learn from, each with its split."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from spaces.space import ArchitectureError, Genotype, SearchSpace

Sample = Callable[[np.random.Generator], Any]  # samples an architecture

TRIES = 1000  # consecutive samples without a valid, or without a new, architecture before giving up
PATIENCE = 10  # samples per architecture found: an equally likely one is missed with probability exp(-10)
Choice = Literal["random", "active"]  # how networks to label are chosen: at random, or those that tell most
POOL = 1500  # networks sampled besides the measured ones, to adapt to a device
HELD_OUT_PERCENT = 5  # percent of networks for validation, and as many for tests; the others are for training


class Drawn(NamedTuple):
    """An architecture in the notation of its space, and its split: "train", "valid" or "test"."""

    architecture: str
    split: str


def draw(space: SearchSpace[Any], count: int, seed: int, sample: Sample | None = None) -> Iterator[Drawn]:
    """Yield the different architectures among ``count`` samples, each with its split.

    The split depends only on the ``architecture_key``, so it is the same for isomorphic architectures and for all
    seeds.

    Args:
        space: the space of the architectures.
        count: number of samples; repeated architectures are yielded once.
        seed: seed of the samples.
        sample: function that samples an architecture; ``space.sample`` if None.
    """
    draws = _draws(space, seed, sample or space.sample, HELD_OUT_PERCENT)
    yield from filter(None, itertools.islice(draws, count))


def draw_different(
    space: SearchSpace[Any], count: int, seed: int, held_out_percent: int = HELD_OUT_PERCENT
) -> Iterator[Drawn]:
    """Yield ``count`` different architectures, each with its split, in the order of ``draw``.

    There are fewer if the space has no more, or if new ones are too rare: after more than TRIES consecutive repeats,
    and more than PATIENCE times the number of architectures found, no more are yielded. ``held_out_percent`` percent of
    the networks are "valid", and as many are "test".
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
    """Yield samples without end, with None for those that were sampled before."""
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
    """Return a function that samples genes with the frequencies that they have among the given genotypes.

    Published tables often cover only a part of their space, or more than is sampled. Genes are sampled independently,
    except that genes which are equal in all given genotypes, such as those of two equal cells, are sampled together.

    Raises:
        ValueError: no genotypes are given.
        ArchitectureError: raised by the returned function if hardly any combination of genes is valid.
    """
    if not len(given):
        raise ValueError(f"{space.name}: expected architectures as a model for the draws, got none.")
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
        raise ArchitectureError(
            f"{space.name}: expected an architecture that resembles those given, got none in {TRIES} draws."
        )

    return sample


def split_of(key: str, valid: int, test: int) -> str:
    """Return the split of a key: "valid" and "test" for ``valid`` and ``test`` percent of all keys, else "train"."""
    percentile = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % 100
    if percentile < valid:
        return "valid"
    return "test" if percentile < valid + test else "train"
