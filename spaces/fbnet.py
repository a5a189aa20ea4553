"""FBNet: 22 layers with nine choices of block each, for CIFAR-100 or ImageNet.

Source:
    Wu et al. 2019, "FBNet: Hardware-Aware Efficient ConvNet Design via Differentiable Neural Architecture Search";
    GATECH-EIC/HW-NAS-Bench 393bb8a, hw_nas_bench_api/fbnet_models. Labels from HELP (Lee et al. 2021), whose device
    names end in the batch size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from spaces.notation import NotationReader, check_count, choice_index
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace
from spaces.stages import in_stages

OPERATIONS = ("k3_e1", "k3_e1_g2", "k3_e3", "k3_e6", "k5_e1", "k5_e1_g2", "k5_e3", "k5_e6", "skip")  # official order
DATASETS = ("cifar100", "ImageNet")
LAYERS_PER_STAGE = (1, 4, 4, 4, 4, 4, 1)
NUM_LAYERS = sum(LAYERS_PER_STAGE)

_REMEDY = "See OPERATIONS and DATASETS in spaces/fbnet.py."
_READER = NotationReader("fbnet", _REMEDY)
_HELP_DEVICES = (
    *("1080ti_1", "1080ti_32", "1080ti_64", "2080ti_1", "2080ti_32", "2080ti_64", "essential_ph_1", "eyeriss"),
    *("fpga", "gold_6240", "pixel3", "raspi4", "samsung_a50", "samsung_s7", "silver_4114", "silver_4210r"),
    *("titan_rtx_1", "titan_rtx_32", "titanx_1", "titanx_32", "titanx_64", "titanxp_1", "titanxp_32", "titanxp_64"),
)


@dataclass(frozen=True)
class Layers:
    """A network: its blocks and its data set.

    Attributes:
        dataset: one of DATASETS; it determines resolution, strides, header and number of classes.
        operations: (22,) one of OPERATIONS for every layer.
    """

    dataset: str
    operations: tuple[str, ...]

    def __post_init__(self) -> None:
        choice_index("fbnet", "the data set", self.dataset, DATASETS, _REMEDY)
        check_count("fbnet layers", "operations", self.operations, NUM_LAYERS, _REMEDY)
        for position, operation in enumerate(self.operations):
            choice_index("fbnet", f"the operation at position {position}", operation, OPERATIONS, _REMEDY)

    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The operations of every stage."""
        return in_stages(self.operations, LAYERS_PER_STAGE)


class FBNet(SearchSpace[Layers]):
    """The FBNet space as HW-NAS-Bench builds it.

    Notations are a JSON list of 22 block names, which stands for CIFAR-100, and HW-NAS-Bench's
    ``{"dataset": ..., "op_idx_list": [22 indices]}``.

    Args:
        dataset: the only data set of architectures that are sampled and encoded. If None, both data sets can be
            encoded, and networks for CIFAR-100 are sampled, as HELP's labels are for these.

    Example:
        >>> space = FBNet(dataset="cifar100")
        >>> space.format(space.decode((0, *[8] * 22)))[:17]
        '["skip", "skip", '
    """

    name = "fbnet"
    objectives = tuple(f"latency_ms@{device}" for device in _HELP_DEVICES)
    gene_help = _REMEDY

    def __init__(self, *, dataset: str | None = None) -> None:
        if dataset is not None and dataset not in DATASETS:
            raise ValueError(f"fbnet dataset: expected one of {', '.join(DATASETS)}, got {dataset!r}.")
        self.datasets = DATASETS if dataset is None else (dataset,)
        self.gene_sizes = (len(self.datasets), *[len(OPERATIONS)] * NUM_LAYERS)

    @property
    def sampled_sizes(self) -> tuple[int, ...]:
        """(23,) number of choices of every gene that are sampled: for the data set only the first."""
        return (1, *self.gene_sizes[1:])

    def encode(self, architecture: Layers) -> Genotype:
        dataset = choice_index("fbnet", "the data set of this space", architecture.dataset, self.datasets, _REMEDY)
        return (dataset, *[OPERATIONS.index(operation) for operation in architecture.operations])

    def _build(self, genotype: Genotype) -> Layers:
        dataset, *operations = genotype
        return Layers(self.datasets[dataset], tuple(OPERATIONS[gene] for gene in operations))

    def parse(self, notation: str) -> Layers:
        value = _READER.read_json(notation)
        dataset, names = (DATASETS[0], value) if isinstance(value, list) else _read_indices(value)
        return Layers(dataset, tuple(_READER.check_list("the notation", names, [NUM_LAYERS])))

    def format(self, architecture: Layers) -> str:
        if architecture.dataset == DATASETS[0]:
            return json.dumps(architecture.operations)
        indices = [OPERATIONS.index(operation) for operation in architecture.operations]
        return json.dumps({"dataset": architecture.dataset, "op_idx_list": indices})

    def architecture_key(self, architecture: Layers) -> str:
        """Return a key that is equal if networks differ only in the positions of skips that are identities.

        A skip in the first layer of a stage is a convolution, because that layer changes the channels; except in the
        first stage, which keeps the stem's 16 channels.
        """
        first, *others = architecture.stages()
        stages = [_without_skips(first), *((stage[0], *_without_skips(stage[1:])) for stage in others)]
        return f"{architecture.dataset}: {'; '.join(' '.join(stage) for stage in stages)}"


def block_settings(operation: str) -> tuple[int, int, int]:
    """Return kernel, expansion and groups of a block that is no skip, which its name gives: ``k5_e1_g2``."""
    kernel, expansion, *groups = [int(part[1:]) for part in operation.split("_")]
    return kernel, expansion, groups[0] if groups else 1


def _without_skips(operations: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(operation for operation in operations if operation != "skip")


def _read_indices(value: Any) -> tuple[str, list[str]]:
    """Return data set and block names of HW-NAS-Bench's notation; the names in ``arch_str``, if given, must agree."""
    _READER.check_keys(value, required=("dataset", "op_idx_list"), optional=("arch_str",))
    indices = _READER.check_list("op_idx_list", value["op_idx_list"], [NUM_LAYERS])
    choices = range(len(OPERATIONS))
    names = [
        OPERATIONS[choice_index("fbnet", f"op_idx_list at position {position}", index, choices, _REMEDY)]
        for position, index in enumerate(indices)
    ]
    if value.get("arch_str", names) != names:
        raise ArchitectureError(
            f"fbnet notation: expected arch_str to name the blocks of op_idx_list, {names}, got "
            f"{shown(value['arch_str'])}. Leave it out."
        )
    return value["dataset"], names
