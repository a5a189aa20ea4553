"""Graph networks for few labels: what they read, what they learn, and where they are of no use."""

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from converters import to_onnx_text
from nasrlm import graph_network
from nasrlm.graph_network import FEWEST_LABELS, PARTS, Operators, _Batch, expected_by_graphs, towards_graphs
from nasrlm.operator_graph import NO_OPERATORS, OperatorGraph
from spaces import get_space

SPACE = get_space("nasbench201")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_network, "STEPS", (80, 80))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [to_onnx_text(SPACE, SPACE.sample(rng)) for _ in range(80)]


@pytest.fixture(scope="module")
def networks(texts: list[str]) -> list[Operators]:
    return list(map(Operators.of_text, texts))


@pytest.fixture(scope="module")
def depths(texts: list[str]) -> np.ndarray:
    """Standardised: of each text, how many convolutions it has."""
    counts = np.array([text.count("Conv") for text in texts], dtype=np.float64)
    return (counts - counts.mean()) / counts.std()


def test_operators_that_are_alike_are_one() -> None:
    """Two branches of a convolution and a pooling, a third of a convolution alone."""
    labels = ["input", "Conv", "Pool", "Conv", "Pool", "Conv", "Sum", "output"]
    graph = OperatorGraph(labels, [False] * 8, [[], [0], [1], [0], [3], [0], [2, 4, 5], [6]])
    known = {label: kind for kind, label in enumerate(["Conv", "Sum", "input", "output"], 1)}
    read = Operators.of(graph)
    assert read.counts.tolist() == [1, 2, 2, 1, 1, 1]
    assert read.along.T.tolist() == [[0, 1], [1, 2], [0, 3], [2, 4], [2, 4], [3, 4], [4, 5]]
    assert read.against.T.tolist() == [[1, 0], [1, 0], [3, 0], [2, 1], [4, 2], [4, 3], [5, 4]]
    both = _Batch.of([read, Operators.of(NO_OPERATORS)], known)
    assert both.kinds.tolist() == [3, 1, 0, 1, 2, 4, 3, 4]  # no labelled network has a pooling
    assert both.networks.tolist() == [0] * 6 + [1] * 2
    assert both.along.T.tolist() == read.along.T.tolist()


def test_networks_learn_how_operators_are_wired(networks: list[Operators], depths: np.ndarray) -> None:
    rows = np.arange(50)
    expected, share = expected_by_graphs(networks, rows, depths[rows], depths[rows])  # the other knows nothing
    assert kendalltau(expected[50:], depths[50:]).statistic > 0.6
    assert share > 0.6
    moved = towards_graphs(np.zeros(len(networks)), networks, rows, depths[rows], depths[rows])
    np.testing.assert_allclose(moved, share * expected)


def test_where_something_else_errs_less_they_are_left_out_after_the_first(
    networks: list[Operators], depths: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    fit = graph_network._fitted
    monkeypatch.setattr(graph_network, "_fitted", lambda *given: fitted.append(given) or fit(*given))
    rows = np.arange(14 * PARTS)
    _, share = expected_by_graphs(networks, rows, depths[rows], np.full(len(rows), 0.01))
    assert (share, len(fitted)) == (0.0, 1)
    assert len(fitted[0][0]) == 14 * (PARTS - 1)  # a part is kept from it


def test_a_handful_of_labels_and_texts_of_no_network(networks: list[Operators]) -> None:
    _, share = expected_by_graphs(networks, np.arange(FEWEST_LABELS - 1), np.zeros(FEWEST_LABELS - 1), np.ones(9))
    assert share == 0.0
    other = [Operators.of_text("print(1)"), *networks[:19]]
    expected, _ = expected_by_graphs(other, np.arange(12), np.linspace(-1, 1, 12), np.ones(12))
    assert np.isfinite(expected).all()


def test_the_same_is_expected_again_and_nobody_elses_chance_is_touched(
    networks: list[Operators], depths: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_network, "STEPS", (5, 5))
    rows = np.arange(20)
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first, share = expected_by_graphs(networks, rows, depths[rows], depths[rows])
    assert torch.equal(torch.random.get_rng_state(), before)
    again, same_share = expected_by_graphs(networks, rows, depths[rows], depths[rows])
    np.testing.assert_array_equal(again, first)
    assert same_share == share
