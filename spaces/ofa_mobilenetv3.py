"""Once-for-all MobileNetV3: five stages of two to four inverted residuals, two widths, 25 resolutions.

Source:
    Cai et al. 2020, "Once-for-All: Train One Network and Specialize it for Efficient Deployment";
    mit-han-lab/once-for-all f03b267, ofa_mbv3.py. Latencies (width 1.2) from HELP (Lee et al. 2021), whose device
    names end in the batch size; accuracies (width 1.0) from IntelLabs DyNAS-T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spaces.ofa import RESOLUTIONS, MobileBlock, MobileOnceForAll, MobileSubnet
from spaces.stages import SupernetChoices

_DEVICES = ("2080ti", "titan_rtx", "titan_xp", "v100")
_BATCH_SIZES = (1, 32, 64)


@dataclass(frozen=True)
class MobileNetV3(MobileSubnet):
    """A network: five stages of blocks, width 1.0 or 1.2, and the input resolution."""

    choices: ClassVar[SupernetChoices] = SupernetChoices(
        space="ofa_mobilenetv3",
        settings={"r": RESOLUTIONS, "w": (1.0, 1.2)},
        depths=((2, 3, 4),) * 5,
        parts={"ks": (3, 5, 7), "e": (3, 4, 6)},
        make_block=MobileBlock,
    )


class OFAMobileNetV3(MobileOnceForAll[MobileNetV3]):
    """The sub-networks of two supernets.

    Args:
        width: 1.0 or 1.2 to have only the networks of one supernet.
        resolution: one of 128, 132, …, 224 to have only networks of this input size.

    Example:
        >>> space = OFAMobileNetV3(width=1.2, resolution=224)
        >>> space.format(space.decode((0,) * len(space.gene_sizes)))[:35]
        '{"ks": [3, 3, 3, 3, 3, 3, 3, 3, 3, '
    """

    name = "ofa_mobilenetv3"
    objectives = (
        "accuracy@imagenet",
        *(f"latency_ms@{device}_{batch_size}" for device in _DEVICES for batch_size in _BATCH_SIZES),
    )
    subnet = MobileNetV3

    def __init__(self, *, width: float | None = None, resolution: int | None = None) -> None:
        super().__init__(w=width, r=resolution)
