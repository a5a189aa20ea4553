"""Protocols of the benchmark: objectives, numbers of labels, and the measure of quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Judge = Literal["kendall_tau", "spearman_rho"]


@dataclass(frozen=True)
class Target:
    """An objective to rank by, in a space whose table is ``<space>.parquet``."""

    space: str
    objective: str


@dataclass(frozen=True)
class Protocol:
    """A protocol: labels of ``size`` random train rows are given, and all labelled test rows are ranked.

    Attributes:
        targets: targets, each ranked separately.
        sizes: numbers of labels.
        judge: the rank correlation to sort by; both are recorded.
        sources: targets of other spaces whose labels may be used too.
        source_labels: total number of these labels.
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

# Sizes for NAS-Bench-101 and 201 are those of PINAT (Lu et al., AAAI 2023), 0.02 to 10 % of the published spaces. The
# devices for NAS-Bench-201 are those of HELP (Lee et al. 2021, arXiv 2106.08630) that are in the published table; those
# for FBNet are of kinds as different as possible.
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


def get_protocol(name: str, objectives: Sequence[str] = ()) -> Protocol:
    """Return the protocol of this name, ranking by these objectives of its space if any are given.

    Raises:
        ValueError: there is none, or objectives are given for one of several spaces.
    """
    if name not in PROTOCOLS:
        raise ValueError(f"--protocol: expected one of {', '.join(PROTOCOLS)}, got {name!r}.")
    protocol = PROTOCOLS[name]
    if not objectives:
        return protocol
    spaces = {target.space for target in protocol.targets}
    if len(spaces) > 1:
        raise ValueError(
            f"--objectives: expected a protocol of one space with it, got {name}. It has no effect: leave it out."
        )
    (space,) = spaces
    return replace(protocol, targets=tuple(Target(space, objective) for objective in objectives))
