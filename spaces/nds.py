"""NDS at CIFAR-10: the spaces of NASNet, AmoebaNet, PNAS, ENAS and DARTS, each with a choice of width and depth.

Source:
    Radosavovic et al. 2019, "On Network Design Spaces for Visual Recognition"; cells as in pycls, models/nas; widths
    and depths as in microsoft/nni, nas/hub/pytorch/nasnet.py.
"""

from __future__ import annotations

import json
from typing import Any

from spaces.cell_notation import CELL_KINDS, GENOTYPE_KEYS, read_cell, spell_cell
from spaces.cell_space import CellSpace, Gene
from spaces.cells import MIN_DEPTH, CellNetwork
from spaces.notation import check_keys, choice_index, read_object
from spaces.space import ArchitectureError

SAMPLED_WIDTHS = (16, 24, 32)
SAMPLED_DEPTHS = (4, 8, 12, 16, 20)
WIDTHS = (*SAMPLED_WIDTHS, 36)  # of the published cells
DEPTHS = (*SAMPLED_DEPTHS, 5)


class NDS(CellSpace):
    """One space of the family.

    The notation is the ``net`` part of a record: ``{"genotype": {"normal": [["skip_connect", 0], …],
    "normal_concat": [2, …], "reduce": …, "reduce_concat": …}, "width": 16, "depth": 20, "aux": false}``.
    """

    objectives = ("train_error_percent@cifar10", "test_error_percent@cifar10", "iteration_ms@nds")

    def __init__(self) -> None:
        super().__init__(
            Gene("width", WIDTHS, len(SAMPLED_WIDTHS)),
            Gene("depth", DEPTHS, len(SAMPLED_DEPTHS)),
            Gene("aux", (False, True), 2),
        )

    def _network_values(self, architecture: CellNetwork) -> list[object]:
        return [architecture.width, architecture.depth, architecture.aux]

    def parse(self, notation: str) -> CellNetwork:
        remedy = f"Write it like {self._example()}."
        net = read_object(
            self.name, notation, remedy, required=("genotype", "width", "depth", "aux"), optional=("drop_prob",)
        )
        genotype = net["genotype"]
        check_keys(self.name, genotype, remedy, required=GENOTYPE_KEYS)
        normal, reduce = [
            read_cell(
                self.name,
                kind,
                genotype[kind],
                genotype[f"{kind}_concat"],
                operations=self.operations,
                num_nodes=self.num_nodes,
                remedy=remedy,
            )
            for kind in CELL_KINDS
        ]
        if not isinstance(net["aux"], bool):
            raise ArchitectureError
        return CellNetwork(normal, reduce, width, depth, aux)
