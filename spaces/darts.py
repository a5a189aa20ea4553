"""DARTS for CIFAR-10 as in NAS-Bench-301: about 1e18 pairs of cells, seven operations.

Source:
    Liu et al. 2019, "DARTS: Differentiable Architecture Search", quark0/darts; Zela et al. 2022, "Surrogate NAS
    Benchmarks: Going Beyond the Limited Search Spaces of Tabular NAS Benchmarks", automl/nasbench301.
"""

from __future__ import annotations

import json
from typing import Any

from spaces.cell_notation import (
    CELL_KINDS,
    GENOTYPE_KEYS,
    config_to_genotype,
    is_config,
    read_python_genotype,
    spell_cell,
)
from spaces.cell_space import CellSpace, Gene
from spaces.cells import MIN_DEPTH, CellNetwork
from spaces.notation import NotationReader, checked_text

# Of NAS-Bench-301, of search and evaluation in the DARTS paper, and of a long run in NAS-Bench-301.
INIT_CHANNELS = (32, 16, 36, 50)
LAYERS = (8, 20)


class DARTS(CellSpace):
    """Cells of four nodes, each of which reads two different states; the network around the cells is fixed.

    Notations are a DARTS genotype as JSON, with or without ``init_channels`` and ``layers``, and with one ``concat``
    for both cells or one for each; ``Genotype(...)`` as Python prints it; a configuration of NAS-Bench-301 as JSON.

    NOTE: published tables contain cells with the operation ``none`` and with nodes that read one state twice. They can
    be parsed and have genotypes, but are never sampled, and ``size`` does not count them.

    Args:
        init_channels: channels of an operation in the first cell, if the notation does not give them.
        layers: number of cells, if the notation does not give it.
    """

    name = "darts"
    objectives = ("short_accuracy@cifar10", "accuracy_50ep@cifar10", "accuracy_10ep@cifar10")
    operations = (
        *("max_pool_3x3", "avg_pool_3x3", "skip_connect", "sep_conv_3x3", "sep_conv_5x5"),
        *("dil_conv_3x3", "dil_conv_5x5", "none"),
    )
    sampled_operations = 7
    num_nodes = 4
    equal_inputs = False
    concat_all = True
    remedy = (
        'Write a DARTS genotype, {"normal": [["sep_conv_3x3", 0], ...], "normal_concat": [2, 3, 4, 5], "reduce": ..., '
        '"reduce_concat": ...}, or a configuration of NAS-Bench-301.'
    )

    def __init__(self, init_channels: int = INIT_CHANNELS[0], layers: int = LAYERS[0]) -> None:
        self.init_channels = NotationReader(self.name, "It counts channels.").read_integer(
            "init_channels", init_channels, 1
        )
        self.layers = NotationReader(self.name, "It counts cells.").read_integer("layers", layers, MIN_DEPTH)
        super().__init__(
            Gene("init_channels", tuple(dict.fromkeys((init_channels, *INIT_CHANNELS))), 1),
            Gene("layers", tuple(dict.fromkeys((layers, *LAYERS))), 1),
        )

    def parse(self, notation: str) -> CellNetwork:
        genotype = self._read_genotype(notation)
        normal, reduce = self._read_cells(genotype)
        channels = self.reader.read_integer("init_channels", genotype.get("init_channels", self.init_channels), 1)
        layers = self.reader.read_integer("layers", genotype.get("layers", self.layers), MIN_DEPTH)
        return CellNetwork(normal, reduce, channels, layers)

    def _read_genotype(self, notation: str) -> dict[str, Any]:
        if checked_text(self.name, notation).lstrip().startswith("Genotype"):
            return read_python_genotype(self.reader, notation)
        value = self.reader.read_json(notation)
        if is_config(value):
            return config_to_genotype(self.reader, value, self.num_nodes)
        one_concat = isinstance(value, dict) and "concat" in value
        keys = (*CELL_KINDS, "concat") if one_concat else GENOTYPE_KEYS
        self.reader.check_keys(value, required=keys, optional=("init_channels", "layers"))
        concats = {f"{kind}_concat": value["concat"] for kind in CELL_KINDS} if one_concat else {}
        return {**value, **concats}

    def format(self, architecture: CellNetwork) -> str:
        cells = spell_cell("normal", architecture.normal) | spell_cell("reduce", architecture.reduce)
        return json.dumps({**cells, "init_channels": architecture.width, "layers": architecture.depth})
