"""Goldens whose networks are written in torch: the spaces that have a rendering, and the module of a golden."""

from typing import Any

from torch import nn

from tests.converters.block_networks import FBNetNetwork, HiAMLNetwork, OFAMobileNetV3Network
from tests.converters.cell_networks import DARTSNetwork, NASBench101Network, NASBench201Network
from tests.spaces.contract import read_goldens

NETWORKS = {
    "darts": DARTSNetwork,
    "fbnet": FBNetNetwork,
    "hiaml": HiAMLNetwork,
    "nasbench101": NASBench101Network,
    "nasbench201": NASBench201Network,
    "ofa_mobilenetv3": OFAMobileNetV3Network,
}


def rendered_goldens(name: str) -> list[dict[str, Any]]:
    """Goldens of a space, without the variants that the networks in torch leave out."""
    return [row for row in read_goldens(name) if _is_rendered(row["genotype"])]


def module_of(name: str, row: dict[str, Any]) -> nn.Module:
    """The network of a golden, random weights."""
    genotype = row["genotype"]
    if name == "nasbench101":
        genotype = {"adjacency": row["pruned_adjacency"], "operations": row["pruned_operations"]}
    return NETWORKS[name](genotype)


def _is_rendered(genotype: Any) -> bool:
    return not isinstance(genotype, dict) or (genotype.get("dataset") != "ImageNet" and genotype.get("w", 1.0) == 1.0)
