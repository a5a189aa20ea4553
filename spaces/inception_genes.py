"""Genes of a stage of Inception networks.

They are the number of blocks, the lengths of the paths, which one of three paths is widest, and then for every path its
operations and internal channels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from math import prod

import numpy as np

from spaces.inception_blocks import (
    CONVOLUTIONS,
    LAYOUTS,
    MAX_BLOCKS,
    MAX_OPERATIONS,
    MAX_PATHS,
    MIN_BLOCKS,
    MIN_LENGTHS,
    SEQUENCES,
    BlockPath,
    Stage,
    internal_choices,
    path_widths,
)
from spaces.sequences import lazy_product
from spaces.space import Genotype

PATH_GENE_SIZES = (*SEQUENCES.gene_sizes, 3)
GENES_PER_STAGE = 3 + MAX_PATHS * len(PATH_GENE_SIZES)
INTERNAL_ODDS = (0.6, 0.3, 0.1)  # probabilities of the choices of internal_choices
_UP_TO = (np.cumsum(INTERNAL_ODDS) / np.cumsum(INTERNAL_ODDS)[-1]).tolist()


def stage_gene_sizes(channels: int) -> Genotype:
    """Return the number of choices of every gene of a stage; with few channels three paths have the same width."""
    widest = len(_arrangements(channels, 3))
    return MAX_BLOCKS - MIN_BLOCKS + 1, len(LAYOUTS), widest, *PATH_GENE_SIZES * MAX_PATHS


def sample_stage(channels: int, rng: np.random.Generator) -> Stage:
    """Sample a stage as in sample_net_config of GENNAPE, model_src/search_space/inception/arch_sampler.py."""
    num_blocks = int(rng.integers(MIN_BLOCKS, MAX_BLOCKS + 1))
    num_paths = int(rng.integers(1, MAX_PATHS + 1))
    widths = path_widths(channels, num_paths, widest=int(rng.integers(num_paths)))
    paths: list[BlockPath] = []
    left = MAX_OPERATIONS[num_paths]
    for number, out in enumerate(widths, start=1):
        maximum = left - MIN_LENGTHS[num_paths] * (num_paths - number)
        operations = SEQUENCES.sample(int(rng.integers(MIN_LENGTHS[num_paths], maximum + 1)), rng)
        left -= len(operations)
        internal = internal_choices(operations, out)[_draw_change(rng)]
        paths.append(BlockPath(operations, internal, out))
    return Stage(tuple(paths), num_blocks)


def all_stages(channels: int) -> Iterator[Stage]:
    """Yield every stage of ``channels``, in lexicographic order of genes."""
    for num_blocks in range(MIN_BLOCKS, MAX_BLOCKS + 1):
        for lengths in LAYOUTS:
            for widths in _arrangements(channels, len(lengths)):
                paths = [partial(_all_paths, length, out) for length, out in zip(lengths, widths, strict=True)]
                yield from (Stage(chosen, num_blocks) for chosen in lazy_product(*paths))


def _all_paths(length: int, out: int) -> Iterator[BlockPath]:
    for operations in SEQUENCES.enumerate(length):
        for internal in dict.fromkeys(internal_choices(operations, out)):
            yield BlockPath(operations, internal, out)


def _arrangements(channels: int, num_paths: int) -> list[tuple[int, ...]]:
    """Return the distinct widths of the paths, by the position of the widest."""
    return list(dict.fromkeys(path_widths(channels, num_paths, widest) for widest in range(3)))


def count_stages(channels: int) -> int:
    """Return the number of different stages of ``channels``."""
    blocks = sum(
        prod(_count_paths(length, out) for length, out in zip(lengths, widths, strict=True))
        for lengths in LAYOUTS
        for widths in _arrangements(channels, len(lengths))
    )
    return (MAX_BLOCKS - MIN_BLOCKS + 1) * blocks


@cache
def _count_paths(length: int, out: int) -> int:
    if length <= 2:
        return sum(1 for _ in _all_paths(length, out))
    choices = internal_choices(CONVOLUTIONS[:2], out)  # longer ones have two convolutions
    return SEQUENCES.count(length) * len(set(choices))


@lru_cache(maxsize=1 << 12)
def encode_stage(stage: Stage) -> Genotype:
    """Return the genes of a stage; genes not in use are 0."""
    lengths = tuple(len(path.operations) for path in stage.paths)
    widths = [path.out for path in stage.paths]
    genes = [stage.num_blocks - MIN_BLOCKS, LAYOUTS.index(lengths), widths.index(max(widths))]
    for path in stage.paths:
        change = internal_choices(path.operations, path.out).index(path.internal)
        genes += [*SEQUENCES.encode(path.operations), change]
    return (*genes, *[0] * (GENES_PER_STAGE - len(genes)))


def encode_filled_stage(stage: Stage, channels: int, rng: np.random.Generator) -> Genotype:
    """Return the genes of a stage of ``channels``, with random values for genes that are not in use."""
    num_blocks, layout, widest, *_ = encode_stage(stage)
    if len(stage.paths) != 3:
        widest = int(rng.integers(len(_arrangements(channels, 3))))
    genes = [num_blocks, layout, widest]
    for path in stage.paths:
        choices = internal_choices(path.operations, path.out)
        change = choices.index(path.internal) if choices.count(path.internal) < len(choices) else _draw_change(rng)
        genes += [*SEQUENCES.encode_filled(path.operations, rng), change]
    for _ in range(MAX_PATHS - len(stage.paths)):
        operations = SEQUENCES.sample(int(rng.integers(1, SEQUENCES.max_length + 1)), rng)
        genes += [*SEQUENCES.encode_filled(operations, rng), _draw_change(rng)]
    return tuple(genes)


def _draw_change(rng: np.random.Generator) -> int:
    return bisect_right(_UP_TO, rng.random())  # as ``rng.choice`` draws, in a tenth of its time


@lru_cache(maxsize=1 << 12)
def decode_stage(genes: Genotype, channels: int) -> Stage:
    """Return the stage of ``channels`` with these genes; any genes are valid."""
    num_blocks, layout, widest, *path_genes = genes
    lengths = LAYOUTS[layout]
    paths: list[BlockPath] = []
    for number, (length, out) in enumerate(zip(lengths, path_widths(channels, len(lengths), widest), strict=True)):
        *operation_genes, change = path_genes[number * len(PATH_GENE_SIZES) : (number + 1) * len(PATH_GENE_SIZES)]
        operations = SEQUENCES.decode(operation_genes, length)
        paths.append(BlockPath(operations, internal_choices(operations, out)[change], out))
    return Stage(tuple(paths), MIN_BLOCKS + num_blocks)
