"""HiAML: 38,416 networks of four stages with 14 choices of a hand-made block each.

Source:
    Mills et al. 2023, "GENNAPE: Towards Generalized Neural Architecture Performance Estimators";
    Ascend-Research/GENNAPE ac30e05, model_src/search_space/hiaml_two_path.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from spaces.notation import NotationReader, check_count, choice_index
from spaces.space import Genotype, SearchSpace

BLOCKS = (
    *("hiaml_z", "hiaml_a22", "hiaml_l20", "hiaml_j30", "hiaml_b23", "hiaml_t20", "hiaml_g30", "hiaml_r30"),
    *("hiaml_t31", "hiaml_src0", "hiaml_src1", "hiaml_src3", "hiaml_src7", "hiaml_src8"),
)
NUM_STAGES = 4

_REMEDY = "See BLOCKS in spaces/hiaml.py."
_READER = NotationReader("hiaml", _REMEDY)


@dataclass(frozen=True)
class Stages:
    """The blocks of all stages.

    Attributes:
        blocks: (4,) one of BLOCKS for every stage; a stage has two copies of its block.
    """

    blocks: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("hiaml stages", "blocks", self.blocks, NUM_STAGES, _REMEDY)
        for position, block in enumerate(self.blocks):
            choice_index("hiaml stages", f"the block at position {position}", block, BLOCKS, _REMEDY)


class HiAML(SearchSpace[Stages]):
    """Four stages with one block name each; no two architectures are isomorphic.

    Attributes:
        input_shape: NCHW of one image.
        num_classes: width of the logits.

    Example:
        >>> space = HiAML()
        >>> space.format(space.decode((0, 1, 2, 13)))
        '["hiaml_z", "hiaml_a22", "hiaml_l20", "hiaml_src8"]'
    """

    name = "hiaml"
    objectives = ("accuracy@cifar10",)
    gene_sizes = (len(BLOCKS),) * NUM_STAGES
    gene_help = _REMEDY
    input_shape = (1, 3, 32, 32)
    num_classes = 10

    def encode(self, architecture: Stages) -> Genotype:
        return tuple(BLOCKS.index(block) for block in architecture.blocks)

    def _build(self, genotype: Genotype) -> Stages:
        return Stages(tuple(BLOCKS[gene] for gene in genotype))

    def parse(self, notation: str) -> Stages:
        value = _READER.read_json(notation)
        return Stages(tuple(_READER.check_list("the notation", value, [NUM_STAGES])))

    def format(self, architecture: Stages) -> str:
        return json.dumps(architecture.blocks)

    def architecture_key(self, architecture: Stages) -> str:
        return self.format(architecture)
