"""What is compared: objectives, how many labels, how answers are judged. Declarations alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Judge = Literal["kendall_tau", "spearman_rho"]


@dataclass(frozen=True)
class Target:
    """An objective to rank by, in a space; its table is ``<space>.parquet``."""

    space: str
    objective: str


@dataclass(frozen=True)
class Protocol:
    """Labels of ``size`` rows, drawn at random from the train split, then all test rows with a label are ranked.

    Attributes:
        targets: each is ranked by itself.
        sizes: numbers of labels.
        judge: the correlation that is reported first; both are kept.
        sources: other targets whose labels may be used as well.
        source_labels: how many of them altogether.
        held_out: whether a checkpoint must not know any of the targets' objectives.
    """

    targets: tuple[Target, ...]
    sizes: tuple[int, ...]
    judge: Judge = "kendall_tau"
    sources: tuple[Target, ...] = ()
    source_labels: int = 1000
    held_out: bool = False


def _devices(space: str, devices: str) -> tuple[Target, ...]:
    return tuple(Target(space, f"latency_ms@{device}") for device in devices.split())


NASBENCH101 = Target("nasbench101", "valid_accuracy@cifar10")
NASBENCH201 = Target("nasbench201", "accuracy@cifar10")
NASBENCH_MACRO = Target("nasbench_macro", "accuracy@cifar10")
DARTS = Target("darts", "short_accuracy@cifar10")
MNASNET = Target("mnasnet", "proxy_accuracy@imagenet")
CELL_SPACES = (NASBENCH101, NASBENCH201, NASBENCH_MACRO, DARTS)

# Sizes of NAS-Bench-101 and 201 are those of PINAT (Lu et al., AAAI 2023): 0.02 to 10 % of the published spaces. The
# devices of NAS-Bench-201 are those of HELP (Lee et al. 2021, arXiv 2106.08630) that the published table has; those of
# FBNet differ most in kind.
PROTOCOLS = {
    "nasbench201-fewlabels": Protocol((NASBENCH201,), (78, 156, 469, 781, 1563)),
    "nasbench101-fewlabels": Protocol((NASBENCH101,), (100, 172, 424, 4236)),
    "nasbench_macro-fewlabels": Protocol((NASBENCH_MACRO,), (50, 100, 500)),
    "darts-fewlabels": Protocol((DARTS,), (50, 100, 500)),
    "mnasnet-fewlabels": Protocol((MNASNET,), (50, 100, 500)),
    "nasbench201-devices": Protocol(
        _devices("nasbench201", "raspi4 eyeriss fpga"), (10, 20), "spearman_rho", held_out=True
    ),
    "fbnet-devices": Protocol(
        _devices("fbnet", "raspi4 eyeriss fpga pixel3 gold_6240 titan_rtx_32"), (10, 20), "spearman_rho", held_out=True
    ),
    "transfer-16": Protocol(CELL_SPACES, (16, 100), sources=CELL_SPACES),
}


def get_protocol(name: str) -> Protocol:
    """The protocol of this name.

    Raises:
        ValueError: there is none.
    """
    if name not in PROTOCOLS:
        raise ValueError(f"--protocol: expected one of {', '.join(PROTOCOLS)}, got {name!r}.")
    return PROTOCOLS[name]
