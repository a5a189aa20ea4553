"""Networks that are all known: objectives that the predictor lacks are learned from what these are made of."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.stats import kendalltau

from converters import to_measured_text
from nasrlm.arrays import FloatArray
from nasrlm.prediction import Prediction
from nasrlm.text.counts import log_sizes
from spaces import get_space
from studies.surrogates.graph_process import GraphProcess, Networks, graph_scale, networks_of
from studies.surrogates.process_adapter import ProcessAdapter
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, toy_table, true_values

ROWS = list(SPACE.enumerate())
TEXTS = [SPACE.format(row) for row in ROWS]
TRUE = np.array([true_values(row) for row in ROWS])
COUNTS = [{"count width": float(sum(row.genes[:3])), "count last": float(row.genes[3])} for row in ROWS]


def made_of(space: Any, rows: list[Any], *told: Any, predictions: FloatArray | None = None) -> Networks:
    """Networks with these predictions of all objectives; if none, with one that tells nothing."""
    given = np.zeros((len(rows), 1)) if predictions is None else predictions
    return networks_of(space, rows, *told, for_accuracies=given, for_costs=given)


def toys(predictions: FloatArray | None = None) -> Networks:
    return made_of(SPACE, ROWS, TEXTS, COUNTS, COUNTS, predictions=predictions)


def test_an_accuracy_is_learned_by_graphs_and_a_cost_by_predictions() -> None:
    some = np.random.default_rng(0).permutation(len(ROWS))[:25]
    texts = [TEXTS[row] for row in some]
    accuracy = GraphProcess(toys(), OBJECTIVES[0], texts, TRUE[some, 0])
    assert kendalltau(accuracy.quantiles(TEXTS, np.zeros(1))[:, 0], TRUE[:, 0])[0] > 0.8
    told = (TRUE[:, 2:] - TRUE[:, 2].mean()) / TRUE[:, 2].std()
    cost = GraphProcess(toys(told), OBJECTIVES[2], texts, TRUE[some, 2])
    assert kendalltau(cost.quantiles(TEXTS, np.zeros(1))[:, 0], TRUE[:, 2])[0] > 0.9


def test_costs_add_up_beyond_those_that_are_known() -> None:
    cheap = TRUE[:, 1] <= np.quantile(TRUE[:, 1], 0.2)
    some = np.random.default_rng(0).permutation(np.flatnonzero(~cheap))[:20]
    told = np.random.default_rng(1).normal(size=(len(ROWS), 2))
    process = GraphProcess(toys(told), OBJECTIVES[1], [TEXTS[row] for row in some], TRUE[some, 1])
    found = process.quantiles([TEXTS[row] for row in np.flatnonzero(cheap)], np.zeros(1))[:, 0]
    assert np.abs(found - TRUE[cheap, 1]).mean() < 0.3
    assert np.abs(TRUE[some, 1].min() - TRUE[cheap, 1]).mean() > 1


def test_a_cost_goes_by_sizes() -> None:
    macs = [float(np.random.default_rng(row).uniform()) for row in range(len(ROWS))]
    compiled = [row | {"macs": x} for row, x in zip(COUNTS, macs, strict=True)]
    networks = made_of(SPACE, ROWS, TEXTS, COUNTS, compiled)
    cost = GraphProcess(networks, OBJECTIVES[1], TEXTS[:12], 3.0 + 2.0 * np.array(macs[:12]))
    assert kendalltau(cost.quantiles(TEXTS, np.zeros(1))[:, 0], macs)[0] > 0.9


@pytest.mark.parametrize("name", ["accuracy@mine", "latency_ms@mine"])
def test_what_is_counted_in_texts_counts_too(name: str) -> None:
    """Networks whose graphs, predictions and genes tell nothing."""
    space, rng = get_space("nasbench_macro"), np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(60)]
    texts = [to_measured_text(space, x) for x in drawn]
    networks = made_of(space, drawn, texts, [{"count": float(row)} for row in range(60)], [{}] * 60)
    networks = replace(networks, computed=[], genes=np.zeros((60, 1)))
    sizes = log_sizes(texts)[:, 0]
    labels = 50 + 10 * (sizes - sizes.mean()) / sizes.std()
    process = GraphProcess(networks, name, texts[:12], labels[:12])
    assert kendalltau(process.quantiles(texts[12:], np.zeros(1))[:, 0], labels[12:])[0] > 0.9


def test_networks_of_the_same_graph_are_of_one_kind() -> None:
    networks = toys()
    assert networks.compiled_kinds.tolist() == networks.computed_kinds.tolist()
    of_counts = {tuple(row.items()): kind for row, kind in zip(COUNTS, networks.compiled_kinds.tolist(), strict=True)}
    assert [of_counts[tuple(row.items())] for row in COUNTS] == networks.compiled_kinds.tolist()
    assert len(set(of_counts.values())) == len(of_counts) < len(ROWS)


def test_architectures_may_share_a_text() -> None:
    keys = [SPACE.architecture_key(row) for row in ROWS]
    networks = made_of(SPACE, ROWS, keys, COUNTS, COUNTS)
    process = GraphProcess(networks, OBJECTIVES[0], keys[:60:3], TRUE[:60:3, 0])
    assert kendalltau(process.quantiles(keys, np.zeros(1))[:, 0], TRUE[:, 0])[0] > 0.6


def test_samples_are_joint_and_have_the_quantiles_of_labels_without_noise() -> None:
    networks = toys()
    process = GraphProcess(networks, OBJECTIVES[0], TEXTS[:40:4], TRUE[:40:4, 0])
    twins = [SPACE.format(Row(genes)) for genes in ((4, 3, 2, 3), (2, 3, 4, 3))]
    samples = process.sample(twins, 2000, np.random.default_rng(0))
    assert np.corrcoef(samples)[0, 1] > 0.8  # of the same graph
    quantiles = process.quantiles(twins, np.array([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(np.quantile(samples, (0.159, 0.5, 0.841), axis=1).T, quantiles, rtol=0.05)


def test_quantiles_are_of_labels_with_their_noise() -> None:
    rng = np.random.default_rng(0)
    labels = TRUE[:200:2, 0] + rng.normal(scale=8.0, size=100)
    process = GraphProcess(toys(), OBJECTIVES[0], TEXTS[:200:2], labels)
    low, high = process.quantiles(TEXTS[1:200:2], np.array([-1.28, 1.28])).T
    new = TRUE[1:200:2, 0] + rng.normal(scale=8.0, size=100)
    assert 0.7 < ((low < new) & (new < high)).mean() < 0.9  # 80 % intervals


def test_samples_of_a_network_that_was_measured_often_differ_less_than_its_measurements() -> None:
    networks, rng = toys(), np.random.default_rng(0)
    labels = TRUE[:, 1] * rng.normal(1, 0.1, size=len(ROWS))
    often = np.flatnonzero(networks.compiled_kinds == np.bincount(networks.compiled_kinds).argmax())
    rows = np.r_[often[1:], np.setdiff1d(np.arange(0, len(ROWS), 5), often)]
    process = GraphProcess(networks, OBJECTIVES[1], [TEXTS[x] for x in rows], labels[rows])
    drawn = process.sample([TEXTS[often[0]]], 2000, rng)
    low, high = process.quantiles([TEXTS[often[0]]], np.array([-1.0, 1.0]))[0]
    assert drawn.std() < 0.5 * labels[often].std()
    assert high - low > labels[often].std()  # 68 % of the labels to come


def test_a_single_cost_says_less_of_its_graph_than_many() -> None:
    networks, rng = toys(), np.random.default_rng(0)
    kinds = networks.compiled_kinds
    many, single = np.argsort(-np.bincount(kinds))[:2].tolist()
    firsts = [row for row, kind in enumerate(kinds.tolist()) if kinds.tolist().index(kind) == row]
    rows = [*firsts, *np.flatnonzero(kinds == many)[1:-1].tolist()]
    labels = rng.uniform(5, 50, size=kinds.max() + 1)[kinds[rows]] * rng.normal(1, 0.001, size=len(rows))
    process = GraphProcess(networks, OBJECTIVES[1], [TEXTS[row] for row in rows], labels)
    lasts = [TEXTS[np.flatnonzero(kinds == kind)[-1]] for kind in (many, single)]  # without a label
    of_many, of_single = process.normal(lasts)[1]
    assert of_single > 2 * of_many


@pytest.mark.parametrize(("objective", "factor"), [(0, 0.5), (1, 1.5)])
def test_a_result_that_surprises_is_hardly_followed(objective: int, factor: float) -> None:
    true = TRUE[:, objective]
    networks = toys((true[:, None] - true.mean()) / true.std())
    kinds, rows = networks.compiled_kinds, np.random.default_rng(0).permutation(len(ROWS))[:30]
    labels = true[rows].copy()
    labels[0] *= factor
    process = GraphProcess(networks, OBJECTIVES[objective], [TEXTS[row] for row in rows], labels)
    spellings = np.setdiff1d(np.flatnonzero(kinds == kinds[rows[0]]), rows)
    found = process.quantiles([TEXTS[row] for row in spellings], np.zeros(1))[:, 0]
    assert np.abs(found - true[spellings]).max() < 0.1 * true[rows[0]]


def test_costs_that_differ_little_are_learned_too() -> None:
    told, rows = TRUE[:, [1]] - TRUE[:, 1].mean(), np.random.default_rng(0).permutation(len(ROWS))[:20]
    costs = 1000 * TRUE[:, 1].std() + TRUE[:, 1] + np.random.default_rng(1).normal(scale=0.01, size=len(ROWS))
    process = GraphProcess(toys(told), OBJECTIVES[1], [TEXTS[row] for row in rows], costs[rows])
    found = process.quantiles(TEXTS, np.zeros(1))[:, 0]
    assert np.corrcoef(found, TRUE[:, 1])[0, 1] > 0.9
    assert found.std() > 0.5 * costs.std()


def test_an_adapter_goes_by_graphs_from_ten_results_on() -> None:
    predictor = ToyPredictor(sigma=0.1, objectives=OBJECTIVES[1:])
    networks = mock.Mock(return_value=(ROWS, COUNTS, COUNTS))
    options = {"to_text": SPACE.format, "pool_size": 50, "networks": networks}
    ProcessAdapter(SPACE, predictor, OBJECTIVES[1:], **options)(toy_table()[:25])
    adapter = ProcessAdapter(SPACE, predictor, OBJECTIVES, **options)
    assert OBJECTIVES[0] not in adapter(toy_table()[:9]).objectives
    networks.assert_not_called()
    learned = adapter(toy_table()[:25])
    assert kendalltau(learned.predict(TEXTS, OBJECTIVES[:1], (0.1, 0.5, 0.9)).median[:, 0], TRUE[:, 0])[0] > 0.6
    assert learned.sample(TEXTS[:2], OBJECTIVES, 3, seed=0).shape == (2, 3, 3)


class OtherAccuracy:
    """Knows an accuracy on another data set, which ranks networks alike."""

    objectives = ("accuracy@other",)

    def predict(self, texts: Sequence[str], objectives: Sequence[str], quantiles: Sequence[float]) -> Prediction:
        assert tuple(objectives) == self.objectives
        alike = ToyPredictor(sigma=0.1).predict(texts, OBJECTIVES[:1], quantiles)
        return replace(alike, objectives=self.objectives)

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        raise AssertionError("not needed to learn")


@pytest.mark.parametrize("guessed", [False, True])
def test_an_accuracy_goes_by_others_that_the_predictor_knows_of_the_space(guessed: bool) -> None:
    predictor = OtherAccuracy()
    unknown = frozenset(predictor.objectives if guessed else ())
    predictor.checkpoint = SimpleNamespace(guessed_of=lambda space: unknown)  # type: ignore[attr-defined]
    telling_nothing = [{"count": float(number)} for number in np.random.default_rng(0).permutation(len(ROWS))]
    networks = mock.Mock(return_value=(ROWS, telling_nothing, telling_nothing))
    adapter = ProcessAdapter(SPACE, predictor, OBJECTIVES[:1], to_text=SPACE.format, networks=networks)
    found = adapter(toy_table()[:25]).predict(TEXTS, OBJECTIVES[:1], (0.5,)).median[:, 0]
    assert (kendalltau(found, TRUE[:, 0])[0] > 0.8) == (not guessed)


def test_a_network_that_was_not_named_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one of 480 networks"):
        toys().rows(["9-9-9-9"])


def test_labels_come_back_within_what_can_be() -> None:
    cost = graph_scale("latency_ms@toy", np.array([2.0, 4.0, 9.0]))
    np.testing.assert_allclose(cost.backward(cost.forward(np.array([2.0, 5.0]))), [2.0, 5.0])
    assert cost.backward(np.array([-9.0]))[0] == 1.0
    accuracy = graph_scale("accuracy@toy", np.array([10.0, 90.0, 94.0]))
    low, high = accuracy.backward(np.array([-9.0, 9.0]))
    assert 5.0 <= low < 5.1
    assert high == 100.0


@pytest.mark.parametrize(
    ("name", "value"), [("latency_ms@toy", 5000.0), ("latency_ms@toy", 0.0), ("accuracy@toy", 90.0)]
)
def test_equal_labels_make_nothing_certain(name: str, value: float) -> None:
    process = GraphProcess(toys(np.zeros((len(ROWS), 0))), name, TEXTS[:10], np.full(10, value))
    low, high = process.quantiles(TEXTS[:1], np.array([-1.6, 1.6]))[0]
    assert high - low > 0.01 * max(value, 1.0) * (1 if name.startswith("latency") else 0.1)


def test_chance_is_told_from_what_is_better() -> None:
    labels = np.array([10.0, 10.0, 54.0, 86.0, 90.0, 92.0, 94.0])
    scale = graph_scale("accuracy@toy", labels)
    np.testing.assert_allclose(scale.backward(scale.forward(labels)), labels)
    step = scale.forward(np.array([10.0, 12.0, 92.0, 94.0]))
    assert step[1] - step[0] > 0.5 * (step[3] - step[2]) > 0  # errors alone: a twentieth
