"""NDS for CIFAR-10: the spaces of NASNet, AmoebaNet, PNAS, ENAS and DARTS, each with choices of width and depth.

Source:
    Radosavovic et al. 2019, "On Network Design Spaces for Visual Recognition"; cells as in pycls, models/nas; what is
    sampled as in microsoft/nni, nas/hub/pytorch/nasnet.py.
"""

from __future__ import annotations

import json

from spaces.cell_notation import GENOTYPE_KEYS, spell_cell
from spaces.cell_space import CellSpace, Gene
from spaces.cells import MIN_DEPTH, CellNetwork

WIDTHS = (16, 24, 32, 36)  # 36 occurs only in published records
DEPTHS = (4, 8, 12, 16, 20, 5)
SAMPLED_WIDTHS, SAMPLED_DEPTHS = 3, 5


class NDS(CellSpace):
    """One space of the family. The notation is the ``net`` part of a published record, as JSON."""

    objectives = ("train_error_percent@cifar10", "test_error_percent@cifar10", "iteration_s@cifar10")
    remedy = (
        'Write the net of an NDS record: {"genotype": {"normal": [["skip_connect", 0], ...], "normal_concat": '
        '[2, ...], "reduce": ..., "reduce_concat": ...}, "width": 16, "depth": 20, "aux": false}.'
    )

    def __init__(self) -> None:
        super().__init__(
            Gene("width", WIDTHS, SAMPLED_WIDTHS),
            Gene("depth", DEPTHS, SAMPLED_DEPTHS),
            Gene("aux", (False, True), 2),
        )

    def parse(self, notation: str) -> CellNetwork:
        keys = ("genotype", "width", "depth", "aux")
        net = self.reader.read_object(notation, required=keys, optional=("drop_prob",))
        self.reader.check_keys(net["genotype"], required=GENOTYPE_KEYS)
        normal, reduce = self._read_cells(net["genotype"])
        width = self.reader.read_integer("width", net["width"], 1)
        depth = self.reader.read_integer("depth", net["depth"], MIN_DEPTH)
        if type(net["aux"]) is not bool:
            self.reader.choice_index("aux", json.dumps(net["aux"]), ("true", "false"))
        return CellNetwork(normal, reduce, width, depth, net["aux"])

    def format(self, architecture: CellNetwork) -> str:
        genotype = spell_cell("normal", architecture.normal) | spell_cell("reduce", architecture.reduce)
        width, depth, aux = architecture.width, architecture.depth, architecture.aux
        return json.dumps({"genotype": genotype, "width": width, "depth": depth, "aux": aux})

    def _network_values(self, architecture: CellNetwork) -> list[object]:
        return [architecture.width, architecture.depth, architecture.aux]


class NDSNASNet(NDS):
    """NASNet's cells (Zoph et al., CVPR 2018)."""

    name = "nds_nasnet"
    operations = (
        *("skip_connect", "conv_3x1_1x3", "conv_7x1_1x7", "dil_conv_3x3", "avg_pool_3x3", "max_pool_3x3"),
        *("max_pool_5x5", "max_pool_7x7", "conv_1x1", "conv_3x3", "sep_conv_3x3", "sep_conv_5x5", "sep_conv_7x7"),
    )
    num_nodes = 5
    equal_inputs = True
    concat_all = False


class NDSAmoebaNet(NDS):
    """AmoebaNet's cells (Real et al., AAAI 2019)."""

    name = "nds_amoebanet"
    operations = (
        *("skip_connect", "sep_conv_3x3", "sep_conv_5x5", "sep_conv_7x7", "avg_pool_3x3", "max_pool_3x3"),
        *("dil_sep_conv_3x3", "conv_7x1_1x7"),
    )
    num_nodes = 5
    equal_inputs = True
    concat_all = False


class NDSPNAS(NDS):
    """PNAS's cells (Liu et al., ECCV 2018)."""

    name = "nds_pnas"
    operations = (
        *("sep_conv_3x3", "sep_conv_5x5", "sep_conv_7x7", "conv_7x1_1x7", "skip_connect", "avg_pool_3x3"),
        *("max_pool_3x3", "dil_conv_3x3"),
    )
    num_nodes = 5
    equal_inputs = True
    concat_all = True


class NDSENAS(NDS):
    """ENAS's cells (Pham et al., ICML 2018)."""

    name = "nds_enas"
    operations = ("skip_connect", "sep_conv_3x3", "sep_conv_5x5", "avg_pool_3x3", "max_pool_3x3")
    num_nodes = 5
    equal_inputs = True
    concat_all = False


class NDSDARTS(NDS):
    """DARTS's cells (Liu et al., ICLR 2019), with ``none`` as one of the operations."""

    name = "nds_darts"
    operations = (
        *("none", "max_pool_3x3", "avg_pool_3x3", "skip_connect"),
        *("sep_conv_3x3", "sep_conv_5x5", "dil_conv_3x3", "dil_conv_5x5"),
    )
    num_nodes = 4
    equal_inputs = False
    concat_all = True
