"""DARTS as in NAS-Bench-301: its notations, what is sampled, what only records hold."""

import json

import pytest

from spaces import ArchitectureError, get_space
from spaces.cells import CellNetwork
from spaces.darts import DARTS
from tests.spaces.contract import SpaceContract, read_goldens, rng
from tests.spaces.test_cells import shuffled

SPACE = DARTS()
PREFIX = "NetworkSelectorDatasetInfo:darts:"
V2_NORMAL = (
    "[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "
    "('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)]"
)
V2_REDUCE = (
    "[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 1), "
    "('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)]"
)
V2 = f"Genotype(normal={V2_NORMAL}, normal_concat=range(2, 6), reduce={V2_REDUCE}, reduce_concat=[2, 3, 4, 5])"


def genotype(network: CellNetwork) -> dict:
    return json.loads(SPACE.format(network))


def config(network: CellNetwork) -> dict:
    """What convert_genotype_to_config of nasbench301 makes of a genotype."""
    made = {}
    for kind in ("normal", "reduce"):
        edges, first_edge = genotype(network)[kind], 0
        for node in range(4):
            pair = edges[2 * node : 2 * node + 2]
            made |= {f"{PREFIX}edge_{kind}_{first_edge + source}": operation for operation, source in pair}
            if node:
                sources = "_".join(str(source) for source in sorted(source for _, source in pair))
                made[f"{PREFIX}inputs_node_{kind}_{node + 2}"] = sources
            first_edge += node + 2
    return made


class TestContract(SpaceContract):
    space_name = "darts"
    malformed = (
        *SpaceContract.malformed,
        "Genotype()",
        "Genotype(",
        "Genotype",
        '{"concat": []}',
        '{"edge_normal_0": 0}',
    )


def test_size_is_the_published_one():
    """Seven operations on eight edges, and (1 3 6 10) pairs of inputs, for each cell."""
    assert SPACE.size == (7**8 * 180) ** 2


class TestNotations:
    def test_goldens(self):
        for row in read_goldens("darts"):
            network = SPACE.parse(json.dumps(row["genotype"]))
            assert SPACE.decode(SPACE.encode(network)) == network
            assert (network.width, network.depth) == (32, 8)

    def test_all_forms_of_one_network(self):
        for seed in range(10):
            network = SPACE.sample(rng(seed))
            spelled = genotype(network)
            cells = {key: spelled[key] for key in ("normal", "normal_concat", "reduce", "reduce_concat")}
            short = {"normal": cells["normal"], "reduce": cells["reduce"], "concat": [2, 3, 4, 5]}
            python = ", ".join(f"{key}={value!r}" for key, value in cells.items())
            plain = {key.removeprefix(PREFIX): value for key, value in config(network).items()}
            forms = [json.dumps(form) for form in (spelled, cells, short, config(network), plain)]
            assert {SPACE.parse(form) for form in (*forms, f"Genotype({python})")} == {network}

    def test_pairs_in_any_order(self):
        network = SPACE.sample(rng(0))
        spelled = genotype(network)
        spelled["normal"] = [edge for i in range(0, 8, 2) for edge in reversed(spelled["normal"][i : i + 2])]
        assert SPACE.parse(json.dumps(spelled)) == network

    def test_python_genotype(self):
        network = SPACE.parse(V2)
        assert network.reduce.nodes[1] == (("max_pool_3x3", 1), ("skip_connect", 2))
        assert network.normal.concat == (2, 3, 4, 5)

    @pytest.mark.parametrize(
        "notation",
        [
            "Genotype([], normal=1)",
            "Genotype(**{})",
            "Genotype(normal=print(1))",
            "Genotype(normal=range('a'))",
            "Genotype(" * 200,
            V2.replace("reduce_concat", "concat"),
            V2.replace("('skip_connect', 2)", "'skip_connect'"),
            V2.replace("range(2, 6)", "range(0, 1000000000)"),
        ],
    )
    def test_other_python_is_refused(self, notation):
        with pytest.raises(ArchitectureError, match=r"^darts notation: expected"):
            SPACE.parse(notation)

    def test_configuration_with_settings_of_training(self):
        network = SPACE.sample(rng(0))
        settings = {
            "OptimizerSelector:optimizer": "sgd",
            f"{PREFIX}auxiliary": "True",
            f"{PREFIX}drop_path_prob": 0.2,
            f"{PREFIX}init_channels": 50,
            f"{PREFIX}layers": 20,
        }
        found = SPACE.parse(json.dumps(config(network) | settings))
        assert (found.normal, found.reduce) == (network.normal, network.reduce)
        assert (found.width, found.depth) == (50, 20)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({f"{PREFIX}edge_normal_0": "conv"}, r"expected normal\[0\]\[0\] to be one of"),
            ({f"{PREFIX}inputs_node_normal_4": "2_1"}, "expected inputs_node_normal_4 to be one of 0_1, .*got '2_1'"),
            ({f"{PREFIX}inputs_node_reduce_3": None}, "expected inputs_node_reduce_3 to be one of .*got None"),
            ({f"{PREFIX}edge_reduce_99": "skip_connect"}, "got also 'edge_reduce_99'"),
        ],
    )
    def test_errors_in_configurations(self, change, message):
        with pytest.raises(ArchitectureError, match=message):
            SPACE.parse(json.dumps(config(SPACE.sample(rng(0))) | change))

    def test_a_missing_edge_is_named(self):
        made = config(SPACE.sample(rng(0)))
        del made[f"{PREFIX}edge_reduce_1"]
        with pytest.raises(ArchitectureError, match="got no edge_reduce_1"):
            SPACE.parse(json.dumps(made))


class TestNetworkAround:
    def test_options_stand_in_where_the_notation_does_not_say(self):
        space = get_space("darts", init_channels=36, layers=20)
        network = space.parse(V2)
        assert (network.width, network.depth) == (36, 20)
        assert space.decode(space.encode(network)) == network
        assert space.sample(rng(0)).width == 36
        assert SPACE.parse(space.format(network)) == network

    def test_keys_tell_them_apart(self):
        keys = {
            DARTS(channels, layers).architecture_key(DARTS(channels, layers).parse(V2))
            for channels, layers in ((32, 8), (36, 8), (32, 20))
        }
        assert len(keys) == 3

    def test_published_ones_have_genotypes(self):
        for channels, layers in ((32, 8), (36, 20), (16, 8), (50, 20)):
            network = DARTS(channels, layers).parse(V2)
            assert SPACE.decode(SPACE.encode(network)) == network
        with pytest.raises(ArchitectureError, match="expected init_channels of 32, 16, 36, 50, got 48"):
            SPACE.encode(DARTS(48).parse(V2))

    @pytest.mark.parametrize("options", [{"init_channels": 0}, {"init_channels": 3.5}, {"layers": 2}])
    def test_options_are_checked(self, options):
        with pytest.raises(
            ArchitectureError, match=f"^darts notation: expected {next(iter(options))} to be an integer"
        ):
            DARTS(**options)


def test_none_and_equal_inputs_of_published_tables():
    edges = [["none", 0], ["sep_conv_3x3", 0], *[["skip_connect", 0], ["avg_pool_3x3", 2]] * 3]
    network = SPACE.parse(json.dumps({"normal": edges, "reduce": edges, "concat": [2, 3, 4, 5]}))
    assert SPACE.decode(SPACE.encode(network)) == network
    assert SPACE.mutate(network, rng(0)) != network
    drawn = [SPACE.sample(rng(seed)) for seed in range(50)]
    nodes = [node for sampled in drawn for cell in (sampled.normal, sampled.reduce) for node in cell.nodes]
    assert all("none" not in (first[0], second[0]) and first[1] != second[1] for first, second in nodes)


def test_isomorphic_cells_share_key_and_representative():
    for seed in range(10):
        network = SPACE.sample(rng(seed))
        twins = [CellNetwork(normal, network.reduce, 32, 8) for normal in shuffled(network.normal)]
        assert {SPACE.architecture_key(twin) for twin in twins} == {SPACE.architecture_key(network)}
        assert len({SPACE.representative(twin) for twin in twins}) == 1
