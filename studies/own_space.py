"""Doubts about the networks of a user's own space, before a search relies on them."""

from collections.abc import Hashable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TypeVar

import numpy as np

from converters import to_onnx_text
from spaces import ArchitectureError, SearchSpace
from spaces.registry import REGISTRY

A = TypeVar("A", bound=Hashable)

VARIED = 8  # architectures whose keys are compared with those of their neighbours
BUILT = 3  # pairs with equal keys of which networks are built; each takes up to a second if it is a torch module


def network_doubt(space: SearchSpace[A]) -> str:
    """Return a warning if a user's own space builds networks at random, or gives different ones the same key; else "".

    Networks of this package's spaces are not built. Errors of the user's code are ignored, since a search may need no
    networks.
    """
    if space.address not in REGISTRY:
        with suppress(Exception):
            return next(_doubts(space), "")
    return ""


def _doubts(space: SearchSpace[A]) -> Iterator[str]:
    rng = np.random.default_rng(0)
    sampled = [space.sample(rng) for _ in range(VARIED)]
    if to_onnx_text(space, sampled[0]) != to_onnx_text(space, sampled[0]):
        yield (
            f"{space.name}: expected the same network each time from build, got two for {space.format(sampled[0])}. "
            "Let it depend on the architecture alone."
        )
    for one, other in islice(_pairs_with_one_key(space, sampled), BUILT):
        if to_onnx_text(space, one) != to_onnx_text(space, other):
            yield (
                f"{space.name}: expected different keys for different networks, got one architecture_key for "
                f"{space.format(one)} and {space.format(other)}: only one of them will be evaluated. Let the key tell "
                "them apart."
            )


def _pairs_with_one_key(space: SearchSpace[A], sampled: list[A]) -> Iterator[tuple[A, A]]:
    """Yield pairs of different architectures that differ in one gene and have the same key."""
    for architecture in sampled:
        genotype, key = space.encode(architecture), space.architecture_key(architecture)
        for position, size in enumerate(space.sampled_sizes):
            changed = (*genotype[:position], (genotype[position] + 1) % size, *genotype[position + 1 :])
            with suppress(ArchitectureError):
                other = space.decode(changed)
                if other != architecture and space.architecture_key(other) == key:
                    yield architecture, other
