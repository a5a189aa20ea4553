"""GENNAPE's Inception networks for CIFAR-10: four stages of blocks with up to four parallel paths.

Source:
    Mills et al. 2023, "GENNAPE: Towards Generalized Neural Architecture Performance Estimators";
    Ascend-Research/GENNAPE ac30e05, model_src/search_space/inception.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from spaces.inception_blocks import (
    MAX_BLOCKS,
    MAX_PATHS,
    MIN_BLOCKS,
    SEQUENCES,
    STAGE_CHANNELS,
    BlockPath,
    Stage,
    check_stage,
    stage_stride,
)
from spaces.inception_genes import (
    GENES_PER_STAGE,
    all_stages,
    count_stages,
    decode_stage,
    encode_filled_stage,
    encode_stage,
    sample_stage,
    stage_gene_sizes,
)
from spaces.notation import NotationReader, check_count
from spaces.sequences import lazy_product
from spaces.space import Genotype, SearchSpace, check_generator

REMEDY = (
    'Write it like {"stages": [{"block": {"paths": [{"ops": ["conv3x3"], "op_types": ["conv"], "C_internal": 32, '
    '"C_out": 32}]}, "n_blocks": 2, "C_in": 32, "C_out": 32, "stride": 1}, ...]}.'
)
READER = NotationReader("inception", REMEDY)


@dataclass(frozen=True)
class InceptionNetwork:
    """A network of four stages.

    Attributes:
        stages: (4,) stages in order.
    """

    stages: tuple[Stage, ...]

    def __post_init__(self) -> None:
        check_count("inception network", "stages", self.stages, len(STAGE_CHANNELS), REMEDY)
        for number, stage in enumerate(self.stages):
            check_stage(stage, number)


class Inception(SearchSpace[InceptionNetwork]):
    """Networks of four stages. For the genes of a stage see ``spaces/inception_genes.py``."""

    name = "inception"
    objectives = ("accuracy@cifar10",)
    gene_sizes = tuple(size for channels in STAGE_CHANNELS for size in stage_gene_sizes(channels))
    gene_help = "See LAYOUTS and SEQUENCES in spaces/inception_blocks.py."
    input_shape = (1, 3, 32, 32)
    num_classes = 10

    @property
    def size(self) -> int:
        """Number of architectures; isomorphic ones are counted separately."""
        return prod(count_stages(channels) for channels in STAGE_CHANNELS)

    def sample(self, rng: np.random.Generator) -> InceptionNetwork:
        """Sample a network as in sample_net_config of GENNAPE, model_src/search_space/inception/arch_sampler.py."""
        check_generator("sample", rng)
        return InceptionNetwork(tuple(sample_stage(channels, rng) for channels in STAGE_CHANNELS))

    def crossover(
        self, first: InceptionNetwork, second: InceptionNetwork, rng: np.random.Generator
    ) -> InceptionNetwork:
        """Take for every stage the block from either parent, and independently the number of blocks."""
        check_generator("crossover", rng)
        stages = [
            Stage(pair[rng.integers(2)].paths, pair[rng.integers(2)].num_blocks)
            for pair in zip(first.stages, second.stages, strict=True)
        ]
        return InceptionNetwork(tuple(stages))

    def enumerate(self) -> Iterator[InceptionNetwork]:
        """Yield every architecture once, in lexicographic order of genotypes."""
        return map(InceptionNetwork, lazy_product(*[partial(all_stages, channels) for channels in STAGE_CHANNELS]))

    def encode(self, architecture: InceptionNetwork) -> Genotype:
        return tuple(gene for stage in architecture.stages for gene in encode_stage(stage))

    def _build(self, genotype: Genotype) -> InceptionNetwork:
        starts = range(0, len(genotype), GENES_PER_STAGE)
        genes = [genotype[start : start + GENES_PER_STAGE] for start in starts]
        return InceptionNetwork(tuple(map(decode_stage, genes, STAGE_CHANNELS)))

    def _encode_filled(self, architecture: InceptionNetwork, rng: np.random.Generator) -> Genotype:
        pairs = zip(architecture.stages, STAGE_CHANNELS, strict=True)
        return tuple(gene for stage, channels in pairs for gene in encode_filled_stage(stage, channels, rng))

    def parse(self, notation: str) -> InceptionNetwork:
        value = READER.read_object(notation, required=("stages",))
        stages = READER.check_list("stages", value["stages"], [len(STAGE_CHANNELS)])
        return InceptionNetwork(tuple(_read_stage(number, stage) for number, stage in enumerate(stages)))

    def format(self, architecture: InceptionNetwork) -> str:
        return json.dumps({"stages": [_spell_stage(number, stage) for number, stage in enumerate(architecture.stages)]})

    def representative(self, architecture: InceptionNetwork) -> InceptionNetwork:
        """Return the network with the paths of every stage in the order that the key has."""
        stages = [Stage(tuple(sorted(s.paths, key=_spell_path)), s.num_blocks) for s in architecture.stages]
        return InceptionNetwork(tuple(stages))

    def architecture_key(self, architecture: InceptionNetwork) -> str:
        """Return a key, equal if and only if two networks are isomorphic, which is so if paths are only reordered."""
        stages = [(stage.num_blocks, sorted(map(_spell_path, stage.paths))) for stage in architecture.stages]
        return " ".join([f"{num_blocks}*({', '.join(paths)})" for num_blocks, paths in stages])


def _spell_path(path: BlockPath) -> str:
    return f"{'+'.join(path.operations)}:{path.internal}>{path.out}"


def _read_stage(number: int, value: Any) -> Stage:
    name, fixed = f"stage {number}", _fixed_values(number)
    READER.check_keys(value, required=("block", "n_blocks", *fixed))
    for key, expected in fixed.items():
        READER.choice_index(f"{key} of {name}", value[key], [expected])
    counts = range(MIN_BLOCKS, MAX_BLOCKS + 1)
    num_blocks = counts[READER.choice_index(f"n_blocks of {name}", value["n_blocks"], counts)]
    READER.check_keys(value["block"], required=("paths",))
    paths = READER.check_list(f"paths of {name}", value["block"]["paths"], range(1, MAX_PATHS + 1))
    read = [_read_path(f"{name} path {position}", path) for position, path in enumerate(paths)]
    return Stage(tuple(read), num_blocks)


def _read_path(name: str, value: Any) -> BlockPath:
    READER.check_keys(value, required=("ops", "op_types", "C_internal", "C_out"))
    operations = SEQUENCES.read(value["ops"], value["op_types"], name)
    internal, out = [READER.read_integer(f"{key} of {name}", value[key], 1) for key in ("C_internal", "C_out")]
    return BlockPath(operations, internal, out)


def _spell_stage(number: int, stage: Stage) -> dict[str, Any]:
    paths = [
        {
            "ops": path.operations,
            "op_types": [SEQUENCES.kind(operation) for operation in path.operations],
            "C_internal": path.internal,
            "C_out": path.out,
        }
        for path in stage.paths
    ]
    return {"block": {"paths": paths}, "n_blocks": stage.num_blocks, **_fixed_values(number)}


def _fixed_values(number: int) -> dict[str, int]:
    """Return the entries of a stage in the notation that are the same in all networks."""
    channels = (STAGE_CHANNELS[0], *STAGE_CHANNELS)
    return {"C_in": channels[number], "C_out": channels[number + 1], "stride": stage_stride(number)}
