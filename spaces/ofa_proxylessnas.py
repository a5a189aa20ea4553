"""Once-for-all ProxylessNAS: five stages of two to four inverted residuals, a stage of one, 25 resolutions.

Source:
    Cai et al. 2020, "Once-for-All: Train One Network and Specialize it for Efficient Deployment";
    mit-han-lab/once-for-all f03b267, ofa_proxyless.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spaces.ofa import RESOLUTIONS, MobileBlock, MobileOnceForAll, MobileSubnet
from spaces.stages import SupernetChoices


@dataclass(frozen=True)
class ProxylessNAS(MobileSubnet):
    """A network: six stages of blocks and the input resolution; the width is always 1.3."""

    choices: ClassVar[SupernetChoices] = SupernetChoices(
        space="ofa_proxylessnas",
        settings={"r": RESOLUTIONS, "w": (1.3,)},
        depths=((2, 3, 4),) * 5 + ((1,),),
        parts={"ks": (3, 5, 7), "e": (3, 4, 6)},
        make_block=MobileBlock,
    )


class OFAProxylessNAS(MobileOnceForAll[ProxylessNAS]):
    """The sub-networks of one supernet.

    Args:
        resolution: one of 128, 132, …, 224 to have only networks of this input size.
    """

    name = "ofa_proxylessnas"
    objectives = ("accuracy@imagenet",)
    subnet = ProxylessNAS

    def __init__(self, *, resolution: int | None = None) -> None:
        super().__init__(r=resolution)
