"""Counts of what a network is made of: by hand on small graphs, and equal for isomorphic networks."""

import numpy as np
import pytest

from converters import to_canonical_graph
from converters.builder import GraphBuilder
from nasrlm.text.counts import LONGEST_WALK
from spaces import get_space
from studies.surrogates.features import (
    BESIDE,
    OF_CONSTANTS,
    ROW,
    WALK,
    cost_groups,
    feature_groups,
    feature_matrix,
    features_of,
    graph_features,
)


@pytest.fixture(scope="module")
def diamond() -> dict[str, float]:
    """conv3x3, then conv1x1 beside nothing, summed, then conv3x3 with stride, then the head."""
    g = GraphBuilder((1, 3, 8, 8))
    x = g.conv(g.input, 4, kernel=3)
    x = g.add(x, g.relu(g.conv(x, 4, kernel=1)))
    x = g.conv(x, 8, kernel=3, stride=2)
    graph = g.build(g.linear(g.flatten(g.global_average_pool(x)), 10))
    return graph_features(to_canonical_graph(graph))


def test_layers_and_sizes_are_counted_by_kind_and_place(diamond: dict[str, float]) -> None:
    assert diamond["count Conv3x3"] == diamond["count Conv3x3 /1"] == 1
    assert diamond["count Conv3x3s /2"] == 1
    assert diamond["macs Conv1x1 /1"] == 8 * 8 * 4 * 4
    assert diamond["macs Conv3x3s"] == 4 * 4 * 8 * 4 * 9
    assert diamond["params"] == 27 * 4 + 16 + 36 * 8 + 80
    assert diamond["depth"] == 8


def test_walks_are_counted_over_all_paths(diamond: dict[str, float]) -> None:
    assert diamond[f"{WALK}Conv3x3"] == 1
    assert diamond[f"{WALK}Conv3x3 > Conv3x3s"] == diamond[f"{WALK}Conv1x1 > Conv3x3s"] == 1
    assert diamond[f"{WALK}Conv3x3s > GlobalAveragePool"] == 1
    assert diamond[f"{WALK}Conv3x3 > Conv1x1 > Conv3x3s > GlobalAveragePool"] == 1
    longest = max(len(name.split(" > ")) for name in diamond if name.startswith(WALK))
    assert longest == LONGEST_WALK


def test_what_stands_beside_an_operator_is_counted_with_sums(diamond: dict[str, float]) -> None:
    of_sum = {name: count for name, count in diamond.items() if name.startswith(f"{BESIDE}Sum")}
    assert of_sum == {
        f"{BESIDE}Sum {beside}": 1
        for beside in (
            "< Conv3x3",
            "< Relu",
            "> Conv3x3s",
            "< Conv3x3 < Relu",
            "< Conv3x3 > Conv3x3s",
            "< Relu > Conv3x3s",
        )
    }
    assert diamond[f"{BESIDE}Conv3x3 > Conv1x1 > Sum"] == 1


def test_rows_are_operators_with_all_their_attributes(diamond: dict[str, float]) -> None:
    rows = {name: count for name, count in diamond.items() if name.startswith(ROW)}
    assert sum(rows.values()) == diamond["nodes"]
    assert rows[f"{ROW}nn.Conv weight_shape=(4, 4, 1, 1)"] == 1


def test_two_of_a_kind_beside_an_operator_are_one_pair() -> None:
    g = GraphBuilder((1, 3, 8, 8))
    x = g.conv(g.input, 4, kernel=3)
    counts = graph_features(g.build(g.add(g.conv(x, 4, kernel=1), g.conv(x, 4, kernel=1), g.conv(x, 4, kernel=1))))
    assert counts[f"{BESIDE}Conv3x3 > Conv1x1"] == 3
    assert counts[f"{BESIDE}Conv3x3 > Conv1x1 > Conv1x1"] == 3
    assert not any(name.startswith(f"{BESIDE}Conv1x1 > Conv") for name in counts)


def test_convolutions_on_a_path(diamond: dict[str, float]) -> None:
    assert np.exp(diamond["paths"]) == pytest.approx(2)
    assert (diamond["path mean"], diamond["path variance"], diamond["path minimum"]) == pytest.approx((2.5, 0.25, 2))


def test_isomorphic_cells_have_equal_features_and_a_dead_network_has_some() -> None:
    space = get_space("nasbench201")
    spellings = [space.decode(genotype) for genotype in ((0, 0, 0, 3, 0, 0), (0, 0, 0, 3, 3, 0), (2, 0, 3, 0, 0, 0))]
    keys = [space.architecture_key(architecture) for architecture in spellings]
    counted = features_of(space, spellings)
    for row, key in enumerate(keys):
        assert (counted[row] == counted[0]) == (key == keys[0])
        assert counted[row]["nodes"] > 0


def test_all_networks_that_ignore_their_input_have_the_same_features_unless_compiled() -> None:
    space = get_space("nasbench201")
    dead = [space.decode(genotype) for genotype in ((0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 3, 2), (1, 3, 3, 0, 0, 0))]
    assert len({space.architecture_key(architecture) for architecture in dead}) > 1
    assert features_of(space, dead) == [OF_CONSTANTS] * len(dead)
    compiled = features_of(space, dead, compiled=True)
    assert compiled[1]["macs"] > compiled[0]["macs"]


@pytest.mark.parametrize("name", ["darts", "fbnet", "mnasnet", "nasbench_macro", "nasbench101", "ofa_mobilenetv3"])
def test_every_kind_of_space_has_walks_and_places(name: str) -> None:
    space = get_space(name)
    rng = np.random.default_rng(0)
    features = features_of(space, [space.sample(rng)] * 2)
    matrix, names = feature_matrix(features)
    assert matrix.shape == (2, len(names))
    assert np.isfinite(matrix).all()
    assert any(name.startswith(WALK) for name in names)
    assert any(name.endswith("/2") for name in names)


def test_rare_features_are_left_out_and_missing_ones_are_zero() -> None:
    matrix, names = feature_matrix([{"a": 1.0, "b": 3.0}, {"a": 0.0}, {"b": 0.0, "c": 5.0}])
    assert names == ("a", "b")
    assert np.allclose(np.expm1(matrix), [[1, 3], [0, 0], [0, 0]])


def test_groups_are_scaled_one_by_one_or_together() -> None:
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    features = features_of(space, [space.sample(rng) for _ in range(30)])
    counts, short, walks, beside, whole_rows = feature_groups(features)
    assert counts.std(axis=0) == pytest.approx(1)
    assert short.shape[1] < walks.shape[1]
    for group in (short, walks, beside, whole_rows):
        assert group.mean(axis=0) == pytest.approx(0)
        assert group.var(axis=0).mean() == pytest.approx(1)
        assert np.ptp(group.std(axis=0)) > 0.1


def test_what_a_compiler_leaves_differs_between_spellings() -> None:
    space = get_space("nasbench201")
    alone, dead, copied = [
        space.decode(genotype) for genotype in ((0, 0, 0, 3, 0, 0), (1, 3, 2, 3, 0, 0), (0, 1, 0, 3, 1, 0))
    ]
    assert len({space.architecture_key(architecture) for architecture in (alone, dead, copied)}) == 1
    counted = features_of(space, [alone, dead, copied], compiled=True)
    assert counted[0] == counted[1]  # what nothing reads is gone
    assert counted[2]["count Zero"] == counted[2]["count Scale"] == 15  # a zero that is copied and added, in each cell
    assert "count Scale" not in counted[0]
    sizes, counts = cost_groups(counted)
    np.testing.assert_allclose(counts.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(counts.std(axis=0), 1)
    assert (counts[0] == counts[1]).all()
    assert counts.shape[1] == 3  # sums, zeros and copies; convolutions are as many
    assert sizes.shape[1] == 3  # activations, nodes and depth; parameters and multiply-accumulates are as many
    np.testing.assert_allclose(sizes.std(axis=0), 1)
