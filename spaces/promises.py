"""Checks the results of a user's space when it is opened, since wrong types would otherwise fail much later."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spaces.shown import shown
from spaces.space import SearchSpace

LOOKED_AT = 8  # architectures to check, at random: a mistake that concerns few choices may not show in the first


def broken_promise(space: SearchSpace[Any]) -> str:
    """Return the first requirement that a space violates, as "expected …, got …"; "" if none is found.

    A few architectures are checked. Exceptions of the space's methods are ignored here; they surface when the method is
    used.
    """
    with contextlib.suppress(Exception):
        return next(_broken_promises(space), "")
    return ""


def _broken_promises(space: SearchSpace[Any]) -> Iterator[str]:
    if not _is_line(space.name):
        yield f"expected a name, got {shown(space.name)}"
    if not isinstance(space.objectives, tuple | list) or not all(map(_is_line, space.objectives)):
        yield f"expected a tuple of names in objectives, got {shown(space.objectives)}"
    sizes = space.gene_sizes
    if not isinstance(sizes, tuple | list) or not all(_is_integer(size) and size > 0 for size in sizes):
        yield f"expected a tuple of positive integers in gene_sizes, got {shown(sizes)}"
    if not _is_integer(space.size):
        yield f"expected an integer as size, got {shown(space.size)}"
    rng = np.random.default_rng(0)
    sampled = [space.sample(rng) for _ in range(LOOKED_AT)]
    for architecture in sampled:
        yield from _broken_by_one(space, architecture)
    if type(space).mutate is not SearchSpace.mutate:
        children = [space.mutate(architecture, rng) for architecture in sampled]
        yield from _broken_by_children(space, children, "mutate")
        if children == sampled and space.size != 1:
            yield f"expected an architecture other than the parent from mutate, got {shown(sampled[0])} unchanged"
    if type(space).crossover is not SearchSpace.crossover:
        children = [space.crossover(*pair, rng) for pair in itertools.pairwise(sampled)]
        yield from _broken_by_children(space, children, "crossover")


def _broken_by_one(space: SearchSpace[Any], architecture: Any) -> Iterator[str]:
    if architecture is None or isinstance(architecture, Iterator):
        yield f"expected an architecture from sample, got {shown(architecture)}"
    if not _is_hashable(architecture):
        yield f"expected architectures that can be hashed, such as frozen dataclasses, got {shown(architecture)}"
    notation = space.format(architecture)
    if not _is_line(notation):
        yield f"expected a line of text from format, got {shown(notation)}"
    genotype = space.encode(architecture)
    if not _is_genotype(genotype, space.gene_sizes):
        yield f"expected a tuple with one integer per gene from encode, got {shown(genotype)}"
    key = space.architecture_key(architecture)
    if not _is_line(key):
        yield f"expected a line of text from architecture_key, got {shown(key)}"
    ways: tuple[tuple[Any, Callable[[Any], Any], str], ...] = (
        (notation, space.parse, "parse"),
        (genotype, space.decode, "decode"),
    )
    for spelling, back, method in ways:
        with contextlib.suppress(Exception):  # it surfaces when the method is used
            if (read := back(spelling)) != architecture:
                wanted = f"a result equal to {shown(architecture)} from {method} of {shown(spelling)}"
                yield f"expected {wanted}, got {shown(read)}"
    if (again := space.architecture_key(architecture)) != key:
        yield f"expected a single architecture_key per architecture, got {shown(key)} and {shown(again)}"


def _broken_by_children(space: SearchSpace[Any], children: Sequence[Any], method: str) -> Iterator[str]:
    for child in children:
        try:
            is_architecture = space.parse(space.format(child)) == child
        except Exception:  # of the child, since they succeeded for its parents
            is_architecture = False
        if not is_architecture:
            yield f"expected an architecture from {method}, got {shown(child)}"


def _is_line(value: object) -> bool:
    return isinstance(value, str) and len(value.splitlines()) == 1


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_genotype(value: object, gene_sizes: Sequence[int]) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == len(gene_sizes)
        and all(_is_integer(gene) and 0 <= gene < size for gene, size in zip(value, gene_sizes, strict=True))
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
