"""Architectures to learn from: drawn at random, each with the split that it belongs to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from spaces.space import SearchSpace

VALID_PERCENT, TEST_PERCENT = 5, 5  # of the networks; the others are for training


class Drawn(NamedTuple):
    """An architecture in its space's notation, and "train", "valid" or "test"."""

    architecture: str
    split: str


def draw(space: SearchSpace[Any], count: int, seed: int) -> Iterator[Drawn]:
    """``count`` draws, those left out that were drawn before.

    The split depends on the ``architecture_key`` alone: isomorphic architectures share it, and so do those of other
    seeds.
    """
    rng = np.random.default_rng(seed)
    seen: set[str] = set()
    for _ in range(count):
        architecture = space.sample(rng)
        notation = space.format(architecture)
        if notation not in seen:
            seen.add(notation)
            key = space.architecture_key(architecture)
            yield Drawn(notation, split_of(key, VALID_PERCENT, TEST_PERCENT))


def split_of(key: str, valid: int, test: int) -> str:
    """The split of everything with this key: "valid" and "test" for so many percent of all keys, else "train"."""
    percentile = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % 100
    if percentile < valid:
        return "valid"
    return "test" if percentile < valid + test else "train"
