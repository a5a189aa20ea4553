"""The NDS family: five spaces of cells with width and depth."""

import json
from collections import Counter
from math import prod

import numpy as np
import pytest

from spaces import ArchitectureError, get_space
from spaces.cells import Cell
from spaces.nds import DEPTHS, WIDTHS
from tests.spaces.contract import SpaceContract, read_goldens, rng

NAMES = ("nds_amoebanet", "nds_darts", "nds_enas", "nds_nasnet", "nds_pnas")
ENAS = get_space("nds_enas")


class NDSContract(SpaceContract):
    malformed = (*SpaceContract.malformed, '{"genotype": {}, "width": 16, "depth": 4, "aux": false}')

    def test_goldens_round_trip(self, space):
        for row in read_goldens(self.space_name):
            architecture = space.parse(json.dumps(row["genotype"]))
            assert space.decode(space.encode(architecture)) == architecture
            spelled = json.loads(space.format(architecture))
            assert {**spelled, "genotype": 0} == {**row["genotype"], "genotype": 0}
            for kind in ("normal", "reduce"):
                assert spelled["genotype"][f"{kind}_concat"] == row["genotype"]["genotype"][f"{kind}_concat"]
                pairs, published = spelled["genotype"][kind], row["genotype"]["genotype"][kind]
                for start in range(0, len(pairs), 2):
                    assert sorted(pairs[start : start + 2]) == sorted(published[start : start + 2])

    def test_samples_what_was_published(self, space):
        drawn = [space.sample(rng(seed)) for seed in range(100)]
        assert {network.width for network in drawn} == {16, 24, 32}
        assert {network.depth for network in drawn} == {4, 8, 12, 16, 20}
        cells = [cell for network in drawn for cell in (network.normal, network.reduce)]
        assert {operation for cell in cells for node in cell.nodes for operation, _ in node} == set(space.operations)
        assert any(first[1] == second[1] for cell in cells for first, second in cell.nodes) == space.equal_inputs
        assert all(cell.concat == (cell.all_nodes if space.concat_all else cell.loose_ends) for cell in cells)


class TestAmoebaNet(NDSContract):
    space_name = "nds_amoebanet"


class TestENAS(NDSContract):
    space_name = "nds_enas"


class TestNASNet(NDSContract):
    space_name = "nds_nasnet"


class TestPNAS(NDSContract):
    space_name = "nds_pnas"


class TestDARTS(NDSContract):
    space_name = "nds_darts"


def test_sizes():
    """Five nodes read 2 to 6 states: (3 6 10 15 21) pairs with repetition; four nodes of DARTS (1 3 6 10)."""
    networks = 3 * 5 * 2
    for name in NAMES:
        space = get_space(name)
        pairs = prod((1, 3, 6, 10)) if name == "nds_darts" else prod((3, 6, 10, 15, 21))
        cells = pairs * len(space.operations) ** (2 * space.num_nodes)
        assert space.size == cells**2 * networks


def test_both_inputs_of_a_node_are_drawn_by_themselves():
    generator, pairs = np.random.default_rng(0), Counter()
    for _ in range(1_000):
        (_, low), (_, high) = ENAS.sample(generator).normal.nodes[0]
        pairs[low, high] += 1
    assert set(pairs) == {(0, 0), (0, 1), (1, 1)}
    assert abs(pairs[0, 1] - 500) < 5 * 250**0.5


def test_networks_of_other_forms_parse_but_have_no_genotype():
    net = json.loads(ENAS.format(ENAS.sample(rng(0))))
    wide = ENAS.parse(json.dumps({**net, "width": 48}))
    with pytest.raises(ArchitectureError, match=r"^nds_enas genotype: expected width of 16, 24, 32, 36, got 48\. A"):
        ENAS.encode(wide)
    net["genotype"]["normal_concat"] = [2, 3, 4, 5, 6]
    own = ENAS.parse(json.dumps(net))
    assert own.normal.concat == (2, 3, 4, 5, 6)
    assert ENAS.parse(ENAS.format(own)) == own
    assert ENAS.architecture_key(own) != ENAS.architecture_key(ENAS.sample(rng(0)))
    with pytest.raises(ArchitectureError, match=r"expected normal_concat \[.*\], got \[2, 3, 4, 5, 6\]"):
        ENAS.encode(own)


def test_choices_of_width_and_depth_include_the_published_cells():
    assert (WIDTHS, DEPTHS) == ((16, 24, 32, 36), (4, 8, 12, 16, 20, 5))


def test_settings_of_training_are_left_aside():
    net = json.loads(ENAS.format(ENAS.sample(rng(0))))
    plain = ENAS.parse(json.dumps(net))
    assert ENAS.parse(json.dumps({**net, "drop_prob": 0.1})) == plain


def test_a_representative_has_its_nodes_in_canonical_order():
    first, second = ("sep_conv_3x3", 0), ("skip_connect", 1)
    one = Cell(((first, first), (second, second)), (2, 3))
    other = Cell(((second, second), (first, first)), (2, 3))
    network = ENAS.sample(rng(0))
    twins = [type(network)(cell, cell, 16, 8, aux) for cell, aux in ((one, False), (other, True))]
    assert ENAS.architecture_key(twins[0]) == ENAS.architecture_key(twins[1])
    assert ENAS.representative(twins[0]) == ENAS.representative(twins[1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": "16"}, "expected width to be an integer of 1 or more, got '16'"),
        ({"width": True}, "expected width to be an integer of 1 or more, got True"),
        ({"depth": 3}, "expected depth to be an integer of 4 or more, got 3"),
        ({"aux": 0}, "expected aux to be one of true, false, got '0'"),
        ({"aux": "false"}, "expected aux to be one of true, false, got"),
        ({"stem": 1}, "got also 'stem'"),
        ({"genotype": []}, "expected an object with normal, normal_concat, reduce, reduce_concat, got"),
    ],
)
def test_errors_of_the_network(change, message):
    net = json.loads(ENAS.format(ENAS.sample(rng(0))))
    with pytest.raises(
        ArchitectureError, match=f"^nds_enas notation: {message}" if "got also" not in message else message
    ):
        ENAS.parse(json.dumps(net | change))


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("normal", 3), ["conv", 0], r"expected normal\[3\]\[0\] to be one of skip_connect, .*, got 'conv'"),
        (("reduce", 2), ["skip_connect", 3], r"expected reduce\[2\]\[1\] to be one of 0, 1, 2, got 3"),
        (("reduce", 2), ["skip_connect", True], r"expected reduce\[2\]\[1\] to be one of 0, 1, 2, got True"),
        (("normal", 0), ["skip_connect"], r"expected a list of 2 in normal\[0\], got 1 of them"),
        (("normal", None), [], "expected a list of 10 in normal, got 0 of them"),
        (("normal_concat", None), [1], r"expected normal_concat\[0\] to be one of 2, 3, 4, 5, 6, got 1"),
        (("normal_concat", None), [4, 4], r"expected different states in normal_concat, got \[4, 4\]"),
        (("normal_concat", None), [], "in normal_concat, got 0 of them"),
    ],
)
def test_errors_of_a_cell_name_the_position(place, value, message):
    net = json.loads(ENAS.format(ENAS.sample(rng(0))))
    key, position = place
    if position is None:
        net["genotype"][key] = value
    else:
        net["genotype"][key][position] = value
    with pytest.raises(ArchitectureError, match=message):
        ENAS.parse(json.dumps(net))
