"""Two-Path: two parallel sequences of blocks, concatenated; about 1.7e27 networks for CIFAR-10.

Source:
    Mills et al. 2023, "GENNAPE: Towards Generalized Neural Architecture Performance Estimators";
    Ascend-Research/GENNAPE ac30e05, model_src/search_space/hiaml_two_path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaces.notation import NotationReader
from spaces.sequences import Operations, lazy_product
from spaces.space import Genotype, SearchSpace, check_generator
from spaces.two_path_blocks import BLOCKS, LAYOUTS, MAX_BLOCKS, NUM_REDUCTIONS, BlockPath, spell_path

NUM_PATHS = 2
READER = NotationReader(
    "two_path",
    'Write it like {"path1": [{"op_names": ["conv3x3"], "op_types": ["conv"]}, ...], "path2": [...], '
    '"path1_reduce_inds": [0, 1], "path2_reduce_inds": [0, 1]}.',
)

_GENES_PER_BLOCK = 1 + len(BLOCKS.gene_sizes)
_GENES_PER_PATH = 1 + MAX_BLOCKS * _GENES_PER_BLOCK


@dataclass(frozen=True)
class TwoPathNetwork:
    """Two paths from the stem.

    Attributes:
        paths: (2,) sequences of blocks; their order is that of the notation and has no effect.
    """

    paths: tuple[BlockPath, BlockPath]


class TwoPath(SearchSpace[TwoPathNetwork]):
    """Networks of two paths. The genes of a path are its layout and, for each of four blocks, length and operations."""

    name = "two_path"
    objectives = ("accuracy@cifar10",)
    gene_sizes = (len(LAYOUTS), *(BLOCKS.max_length, *BLOCKS.gene_sizes) * MAX_BLOCKS) * NUM_PATHS
    gene_help = "See LAYOUTS and BLOCKS in spaces/two_path_blocks.py."
    input_shape = (1, 3, 32, 32)
    num_classes = 10

    @property
    def size(self) -> int:
        """Number of architectures; isomorphic ones are counted separately."""
        blocks = sum(BLOCKS.count(length) for length in range(1, BLOCKS.max_length + 1))
        return int(sum(blocks**length for length, _ in LAYOUTS) ** NUM_PATHS)

    def sample(self, rng: np.random.Generator) -> TwoPathNetwork:
        """Sample numbers of blocks, reductions, lengths and operations as in GENNAPE's sample_two_path_net_config."""
        check_generator("sample", rng)
        first, second = [_sample_path(rng) for _ in range(NUM_PATHS)]
        return TwoPathNetwork((first, second))

    def crossover(self, first: TwoPathNetwork, second: TwoPathNetwork, rng: np.random.Generator) -> TwoPathNetwork:
        """Take the layout of each path from either parent, and each block from either parent that has it."""
        check_generator("crossover", rng)
        one, two = [_cross(*paths, rng) for paths in zip(first.paths, second.paths, strict=True)]
        return TwoPathNetwork((one, two))

    def enumerate(self) -> Iterator[TwoPathNetwork]:
        """Yield every architecture once, in lexicographic order of genotypes."""
        return (TwoPathNetwork((first, second)) for first, second in lazy_product(_all_paths, _all_paths))

    def encode(self, architecture: TwoPathNetwork) -> Genotype:
        return tuple(gene for path in architecture.paths for gene in _encode_path(path))

    def _build(self, genotype: Genotype) -> TwoPathNetwork:
        return TwoPathNetwork((_decode_path(genotype[:_GENES_PER_PATH]), _decode_path(genotype[_GENES_PER_PATH:])))

    def _encode_filled(self, architecture: TwoPathNetwork, rng: np.random.Generator) -> Genotype:
        return tuple(gene for path in architecture.paths for gene in _encode_filled_path(path, rng))

    def parse(self, notation: str) -> TwoPathNetwork:
        names = ("path1", "path2")
        keys = (*names, *(f"{name}_reduce_inds" for name in names))
        value = READER.read_object(notation, required=keys)
        first, second = [_read_path(name, value[name], value[f"{name}_reduce_inds"]) for name in names]
        return TwoPathNetwork((first, second))

    def format(self, architecture: TwoPathNetwork) -> str:
        value: dict[str, Any] = {}
        for number, path in enumerate(architecture.paths, start=1):
            value[f"path{number}"] = [
                {"op_names": operations, "op_types": [BLOCKS.kind(name) for name in operations]}
                for operations in path.blocks
            ]
        for number, path in enumerate(architecture.paths, start=1):
            value[f"path{number}_reduce_inds"] = path.reductions
        return json.dumps(value)

    def architecture_key(self, architecture: TwoPathNetwork) -> str:
        """Return a key, equal if and only if two networks are isomorphic.

        Paths are compared layer by layer: ``double3x3`` in a block that keeps its channels equals ``conv3x3`` twice,
        and an operation before the convolution of a reduction could as well be at the end of the reduction before it.
        """
        return " | ".join(sorted(spell_path(path) for path in architecture.paths))

    def representative(self, architecture: TwoPathNetwork) -> TwoPathNetwork:
        """Return the network with its paths in the order of the key; for equal layers, in a fixed order."""
        first, second = sorted(architecture.paths, key=lambda path: (spell_path(path), path.blocks, path.reductions))
        return TwoPathNetwork((first, second))


def _sample_path(rng: np.random.Generator) -> BlockPath:
    length = int(rng.integers(NUM_REDUCTIONS, MAX_BLOCKS + 1))
    blocks = [_sample_block(rng) for _ in range(length)]
    return BlockPath(tuple(blocks), tuple(sorted(rng.permutation(length)[:NUM_REDUCTIONS].tolist())))


def _sample_block(rng: np.random.Generator) -> Operations:
    return BLOCKS.sample(int(rng.integers(1, BLOCKS.max_length + 1)), rng)


def _cross(first: BlockPath, second: BlockPath, rng: np.random.Generator) -> BlockPath:
    parents = (first, second)
    layout = parents[rng.integers(2)]
    blocks: list[Operations] = []
    for position in range(len(layout.blocks)):
        choices = [parent.blocks[position] for parent in parents if position < len(parent.blocks)]
        blocks.append(choices[rng.integers(len(choices))])
    return BlockPath(tuple(blocks), layout.reductions)


def _all_paths() -> Iterator[BlockPath]:
    for length, reductions in LAYOUTS:
        for blocks in lazy_product(*[_all_blocks] * length):
            yield BlockPath(blocks, reductions)


def _all_blocks() -> Iterator[Operations]:
    for length in range(1, BLOCKS.max_length + 1):
        yield from BLOCKS.enumerate(length)


def _encode_path(path: BlockPath) -> Genotype:
    genes = [LAYOUTS.index((len(path.blocks), path.reductions))]
    for operations in path.blocks:
        genes += [len(operations) - 1, *BLOCKS.encode(operations)]
    return (*genes, *[0] * (_GENES_PER_PATH - len(genes)))


def _encode_filled_path(path: BlockPath, rng: np.random.Generator) -> Genotype:
    """Return the genes of a path, with random values for genes that are not in use."""
    genes = [LAYOUTS.index((len(path.blocks), path.reductions))]
    for operations in (*path.blocks, *[_sample_block(rng) for _ in range(MAX_BLOCKS - len(path.blocks))]):
        genes += [len(operations) - 1, *BLOCKS.encode_filled(operations, rng)]
    return tuple(genes)


def _decode_path(genes: Genotype) -> BlockPath:
    length, reductions = LAYOUTS[genes[0]]
    starts = range(1, 1 + length * _GENES_PER_BLOCK, _GENES_PER_BLOCK)
    blocks = [BLOCKS.decode(genes[start + 1 : start + _GENES_PER_BLOCK], 1 + genes[start]) for start in starts]
    return BlockPath(tuple(blocks), reductions)


def _read_path(name: str, blocks: Any, reductions: Any) -> BlockPath:
    blocks = READER.check_list(name, blocks, range(NUM_REDUCTIONS, MAX_BLOCKS + 1))
    for block in blocks:
        READER.check_keys(block, required=("op_names", "op_types"))
    reductions = READER.check_list(f"{name}_reduce_inds", reductions, [NUM_REDUCTIONS])
    reductions = [READER.choice_index(f"{name}_reduce_inds", r, range(len(blocks))) for r in reductions]
    sequences = [
        BLOCKS.read(block["op_names"], block["op_types"], f"{name}[{position}]")
        for position, block in enumerate(blocks)
    ]
    return BlockPath(tuple(sequences), tuple(sorted(reductions)))
