"""Graph networks for few labels: what they read, what they learn, and where they are of no use."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from torch import Tensor

from converters import to_onnx_text
from nasrlm.adaptation import graph_network_fit
from nasrlm.adaptation.graph_network_fit import FEWEST_LABELS, PARTS, FittedGraphs
from nasrlm.model.graph_network import Batch, GraphNetwork, Operators, _kind
from nasrlm.text.operator_graph import NO_OPERATORS, OperatorGraph
from spaces import get_space

SPACE = get_space("nasbench201")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_network_fit, "STEPS", (80, 80))


@pytest.fixture
def fewer_steps(few_steps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not matter how well networks are learned."""
    monkeypatch.setattr(graph_network_fit, "STEPS", (20, 20))


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
    read = Operators.of(graph)
    assert read.kinds.tolist() == [list(_kind(x)) for x in ["input", "Conv", "Pool", "Conv", "Sum", "output"]]
    assert read.counts.tolist() == [1, 2, 2, 1, 1, 1]
    assert read.along.T.tolist() == [[0, 1], [1, 2], [0, 3], [2, 4], [2, 4], [3, 4], [4, 5]]
    assert read.against.T.tolist() == [[1, 0], [1, 0], [3, 0], [2, 1], [4, 2], [4, 3], [5, 4]]
    both = Batch.of([read, Operators.of(NO_OPERATORS)], torch.device("cpu"))
    assert both.networks.tolist() == [0] * 6 + [1] * 2
    assert both.operators.kinds[6:].tolist() == [list(_kind(x)) for x in ("input", "output")]
    assert both.operators.along.T.tolist() == read.along.T.tolist()


def test_networks_learn_how_operators_are_wired(networks: list[Operators], depths: np.ndarray) -> None:
    seen, other = networks[:50], networks[50:]
    fitted = FittedGraphs.fit(seen, depths[:50], depths[:50])  # the other knows nothing
    assert fitted is not None
    scores = fitted.network(other).numpy()
    assert kendalltau(scores, depths[50:]).statistic > 0.6
    assert fitted.share > 0.6
    assert fitted.error < 0.8
    np.testing.assert_allclose(fitted.move(np.ones(30), other), 1 + fitted.share * (scores - 1), rtol=1e-6)


@pytest.mark.usefixtures("fewer_steps")
def test_its_weights_are_numbers_of_16_bits(networks: list[Operators], depths: np.ndarray) -> None:
    fitted = FittedGraphs.fit(networks[:20], depths[:20], depths[:20])
    assert fitted is not None
    assert all(torch.equal(x, x.half().float()) for x in fitted.network.parameters())


def test_where_something_else_errs_less_the_others_are_not_learned(
    networks: list[Operators], depths: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    fit = graph_network_fit._fitted
    monkeypatch.setattr(graph_network_fit, "_fitted", lambda *given: fitted.append(given) or fit(*given))
    count = 14 * PARTS
    assert FittedGraphs.fit(networks[:count], depths[:count], np.full(count, 0.01)) is None
    assert [len(known) for known, *_ in fitted] == [14 * (PARTS - 1)]  # a part is kept from it


@pytest.mark.usefixtures("fewer_steps")
def test_a_handful_of_labels_and_texts_of_no_network(networks: list[Operators], depths: np.ndarray) -> None:
    few = FEWEST_LABELS - 1
    assert FittedGraphs.fit(networks[:few], depths[:few], depths[:few]) is None
    stranger = Operators.of_text("print(1)")
    fitted = FittedGraphs.fit([stranger, *networks[1:30]], depths[:30], depths[:30])
    assert fitted is not None
    assert fitted.network([stranger, *networks[30:50]]).isfinite().all()


@pytest.mark.usefixtures("fewer_steps")
def test_the_same_is_learned_again_and_nobody_elses_chance_is_touched(
    networks: list[Operators], depths: np.ndarray
) -> None:
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first, again = (FittedGraphs.fit(networks[:30], depths[:30], depths[:30]) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert first is not None
    assert again is not None
    assert again.share == first.share
    assert torch.equal(again.network(networks), first.network(networks))


@pytest.mark.usefixtures("fewer_steps")
def test_random_numbers_that_another_thread_draws_change_nothing(
    networks: list[Operators], depths: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = FittedGraphs.fit(networks[:30], depths[:30], depths[:30])
    scores = GraphNetwork.forward

    def drawing(network: GraphNetwork, several: Sequence[Operators]) -> Tensor:
        torch.rand(1)
        return scores(network, several)

    monkeypatch.setattr(GraphNetwork, "forward", drawing)
    disturbed = FittedGraphs.fit(networks[:30], depths[:30], depths[:30])
    assert alone is not None
    assert disturbed is not None
    assert torch.equal(disturbed.network(networks), alone.network(networks))
