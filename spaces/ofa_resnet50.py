"""Once-for-all ResNet50: four stages of bottlenecks with three widths each, and an optional block in the stem.

Source:
    Cai et al. 2020, "Once-for-All: Train One Network and Specialize it for Efficient Deployment";
    mit-han-lab/once-for-all f03b267, ofa_resnets.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from spaces.ofa import RESOLUTIONS, OnceForAll, Subnet
from spaces.stages import Stages, SupernetChoices

BASE_DEPTHS = (2, 2, 4, 2)
EXTRA_DEPTHS = (0, 1, 2)
STEM_DEPTHS = {0: False, 1: False, 2: True}  # value of d[0]: whether the stem has a residual block
NUM_WIDTHS = 6  # for channels inside the stem, channels after it, and the four stages


class Bottleneck(NamedTuple):
    """A bottleneck block: the ratio of channels between its outer convolutions to output channels."""

    expansion: float


@dataclass(frozen=True)
class ResNet50(Subnet):
    """A network.

    Attributes:
        stages: four tuples of bottlenecks.
        resolution: height and width of the input.
        stem_block: whether the stem has a residual block.
        widths: (6,) 0, 1 or 2 for 0.65, 0.8 or 1.0 times the channels inside the stem, after it, and in every stage.
    """

    stages: tuple[tuple[Bottleneck, ...], ...]
    stem_block: bool
    widths: tuple[int, ...]

    choices: ClassVar[SupernetChoices] = SupernetChoices(
        space="ofa_resnet50",
        settings={"r": RESOLUTIONS, "d at position 0": (0, 2)}
        | {f"w at position {position}": (0, 1, 2) for position in range(NUM_WIDTHS)},
        depths=tuple(tuple(base + extra for extra in EXTRA_DEPTHS) for base in BASE_DEPTHS),
        parts={"e": (0.2, 0.25, 0.35)},
        make_block=Bottleneck,
    )

    @property
    def settings(self) -> tuple[float, ...]:
        return self.resolution, 2 * self.stem_block, *self.widths

    @classmethod
    def of(cls, settings: Sequence[float], stages: Stages) -> ResNet50:
        resolution, stem_depth, *widths = map(int, settings)
        return cls(resolution=resolution, stem_block=stem_depth == 2, widths=tuple(widths), stages=stages)


class OFAResNet50(OnceForAll[ResNet50]):
    """The sub-networks of one supernet, written ``{"d": [...], "e": [...], "w": [...], "r": 224}``.

    ``d`` starts with 2 if the stem has a residual block; its other numbers are the blocks that every stage has in
    addition to 2, 2, 4 and 2. ``e`` lists the expansions of the blocks in use, or of the maximum number of blocks
    (4, 4, 6 and 4), of which the first in every stage are in use. ``w`` lists the widths.

    Args:
        resolution: one of 128, 132, …, 224 to have only networks of this input size.
    """

    name = "ofa_resnet50"
    objectives = ("accuracy@imagenet",)
    subnet = ResNet50

    def __init__(self, *, resolution: int | None = None) -> None:
        super().__init__(r=resolution)

    def parse(self, notation: str) -> ResNet50:
        choices, reader = self.choices, self.choices.reader
        value = reader.read_object(notation, required=("d", "e", "w", "r"))
        depths = reader.check_list("d", value["d"], [1 + len(BASE_DEPTHS)])
        widths = reader.check_list("w", value["w"], [NUM_WIDTHS])
        stem_depth = choices.pick("d at position 0", depths[0], [*STEM_DEPTHS])
        extra = [choices.pick(f"d at position {at}", x, EXTRA_DEPTHS) for at, x in enumerate(depths[1:], start=1)]
        num_blocks = [base + more for base, more in zip(BASE_DEPTHS, extra, strict=True)]
        given = (value["r"], 2 * STEM_DEPTHS[stem_depth], *widths)
        pairs = zip(choices.settings.items(), given, strict=True)
        settings = [choices.pick(place, x, among) for (place, among), x in pairs]
        return ResNet50.of(settings, choices.read_stages(num_blocks, value))

    def format(self, architecture: ResNet50) -> str:
        extra = [len(stage) - base for stage, base in zip(architecture.stages, BASE_DEPTHS, strict=True)]
        expansions = [block.expansion for stage in architecture.stages for block in stage]
        depths = [2 * architecture.stem_block, *extra]
        return json.dumps({"d": depths, "e": expansions, "w": architecture.widths, "r": architecture.resolution})

    def architecture_key(self, architecture: ResNet50) -> str:
        """Return the notation with the first two widths inside the stem merged, as both give 24 channels."""
        inside, *others = architecture.widths
        return self.format(replace(architecture, widths=(max(inside, 1), *others)))
