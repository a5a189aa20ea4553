"""The MnasNet space of Accel-NASBench: seven blocks with choices of expansion, kernel, depth and attention.

Source:
    Ahmad et al. 2024, "Accel-NASBench: Sustainable Benchmarking for Accelerator-Aware NAS"; afzalxo/Accel-NASBench
    4260357. The space is that of Tan et al. 2019, "MnasNet: Platform-Aware Neural Architecture Search for Mobile".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from spaces.notation import NotationReader, check_count
from spaces.shown import shown
from spaces.space import ArchitectureError, Genotype, SearchSpace

FIELDS = ("e", "k", "l", "se")  # the published names of Block's attributes
MAX_LAYERS = (3, 3, 3, 3, 3, 4, 3)
CHOICES = tuple(((1, 4, 6), (3, 5), tuple(range(1, most + 1)), (False, True)) for most in MAX_LAYERS)
ACTIVATIONS = ("silu", "relu")

_REMEDY = "See CHOICES in spaces/mnasnet.py."
_READER = NotationReader("mnasnet", _REMEDY)


class Block(NamedTuple):
    """The number of layers of a block and their common settings.

    Attributes:
        expansion: 1, 4 or 6.
        kernel: 3 or 5.
        num_layers: 1 to 3, in the sixth block 1 to 4.
        squeeze_excite: whether the layers have squeeze and excitation.
    """

    expansion: int
    kernel: int
    num_layers: int
    squeeze_excite: bool


@dataclass(frozen=True)
class Network:
    """A network: (7,) blocks."""

    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        check_count("mnasnet network", "blocks", self.blocks, len(CHOICES), _REMEDY)
        for index, block in enumerate(self.blocks):
            for field, value, choices in zip(FIELDS, block, CHOICES[index], strict=True):
                if type(value) is not type(choices[0]) or value not in choices:
                    raise ArchitectureError(
                        f"mnasnet network: expected {field} of block {index} to be one of "
                        f"{', '.join(map(str, choices))}, got {shown(value)}. {_REMEDY}"
                    )


class MnasNet(SearchSpace[Network]):
    """Networks of inverted residuals for ImageNet at 224 x 224; no two architectures are isomorphic.

    Notations are a JSON list of 7 objects, ``{"e": 6, "k": 3, "l": 2, "se": true}``, and the published object of
    28 names, ``block0_e`` to ``block6_se``.

    Args:
        activation: silu, as in EfficientNet; or relu, with a hard sigmoid as the gate of the attention, as in the
            published training configurations. The notation does not give it; parameters and MACs are the same.

    Attributes:
        input_shape: NCHW of one image.
        num_classes: width of the logits.

    Example:
        >>> space = MnasNet()
        >>> space.decode((0, 0, 0, 1) * 7).blocks[0]
        Block(expansion=1, kernel=3, num_layers=1, squeeze_excite=True)
    """

    name = "mnasnet"
    objectives = (
        *("proxy_accuracy@imagenet", "latency_ms@zcu102", "latency_ms@vck190"),
        *(f"throughput_ips@{device}" for device in ("a100", "3090", "tpuv2", "tpuv3", "zcu102", "vck190")),
    )
    gene_sizes = tuple(len(choices) for block in CHOICES for choices in block)
    gene_help = _REMEDY
    input_shape = (1, 3, 224, 224)
    num_classes = 1000

    def __init__(self, *, activation: str = "silu") -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"mnasnet activation: expected one of {', '.join(ACTIVATIONS)}, got {activation!r}.")
        self.activation = activation

    def encode(self, architecture: Network) -> Genotype:
        return tuple(
            choices.index(value)
            for block, rows in zip(architecture.blocks, CHOICES, strict=True)
            for value, choices in zip(block, rows, strict=True)
        )

    def _build(self, genotype: Genotype) -> Network:
        genes = iter(genotype)
        blocks = []
        for expansions, kernels, depths, attentions in CHOICES:
            e, k, depth, attention = islice(genes, len(FIELDS))
            blocks.append(Block(expansions[e], kernels[k], depths[depth], attentions[attention]))
        return Network(tuple(blocks))

    def parse(self, notation: str) -> Network:
        value = _READER.read_json(notation)
        rows = _rows(value) if isinstance(value, dict) else _READER.check_list("blocks", value, [len(CHOICES)])
        for row in rows:
            _READER.check_keys(row, required=FIELDS)
        return Network(tuple(Block(*(row[field] for field in FIELDS)) for row in rows))

    def format(self, architecture: Network) -> str:
        return json.dumps([dict(zip(FIELDS, block, strict=True)) for block in architecture.blocks])

    def architecture_key(self, architecture: Network) -> str:
        return self.format(architecture)


def _rows(value: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the published object as a list with one object per block."""
    names = [[f"block{index}_{field}" for field in FIELDS] for index in range(len(CHOICES))]
    _READER.check_keys(value, required=[name for row in names for name in row])
    return [{field: value[name] for field, name in zip(FIELDS, row, strict=True)} for row in names]
