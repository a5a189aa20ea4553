"""Costs of networks of which a checkpoint knows nothing are learned by their sizes."""

from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

from converters import to_onnx_text
from converters.convert import to_canonical_graph, to_graph
from converters.tables.counts import named_counts
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import Pool, make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.metrics import coverage, kendall_tau
from nasrlm.predictor import Predictor
from nasrlm.text.counts import layer_sizes
from nasrlm.text.network import read_written_out
from spaces import get_space, space_names
from tests.nasrlm.scenes import OBJECTIVES, drawn_texts

LATENCY = "latency_ms@new"


def sizes_of(text: str) -> tuple[float, float, float]:
    return layer_sizes(read_written_out(text)[0])


@pytest.mark.parametrize("name", [name for name in space_names() if name != "nasbench201"])
def test_sizes_are_told_by_weights_and_strides(name: str) -> None:
    """But for odd sizes, which are rounded, and for what reads nothing, as behind a `none` of NAS-Bench-201."""
    space, rng = get_space(name), np.random.default_rng(0)
    drawn = [space.sample(rng) for _ in range(6)]
    graphs = [to_canonical_graph(to_graph(space, x)) for x in drawn]
    activations = [sum(prod(graph.shapes[node.outputs[0]]) for node in graph.nodes) for graph in graphs]
    operators = [len(graph.nodes) for graph in graphs]
    counted = np.stack([named_counts(space, drawn, ["macs@onnx"])[:, 0], activations, operators], axis=1)
    of_text = np.array([sizes_of(to_onnx_text(space, x)) for x in drawn])
    np.testing.assert_allclose(of_text, counted, rtol=0.2)


@pytest.fixture(scope="module")
def pools(checkpoint: Checkpoint) -> list[tuple[Pool, np.ndarray]]:
    """Networks of a space that the checkpoint has not seen, and latencies that follow what is multiplied in each."""
    drawn = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        texts = drawn_texts("nasbench_macro", 150, rng)
        multiplied = np.array([sizes_of(text)[0] for text in texts])
        latencies = (multiplied / 1e8) ** 0.8 * np.exp(0.03 * rng.normal(size=len(texts)))
        drawn.append((make_pool(checkpoint, texts), latencies))
    return drawn


@pytest.fixture(scope="module")
def pool(pools: list[tuple[Pool, np.ndarray]]) -> tuple[Pool, np.ndarray]:
    return pools[0]


def labelled(latencies: np.ndarray, count: int) -> np.ndarray:
    return np.where(np.arange(len(latencies)) < count, latencies, np.nan)


def test_ten_latencies_of_an_unknown_space_are_enough(checkpoint: Checkpoint, pool: tuple[Pool, np.ndarray]) -> None:
    known, latencies = pool
    answer = Predictor(adapt(checkpoint, known, LATENCY, labelled(latencies, 10)))
    median = answer.predict(known.texts[10:], [LATENCY]).median
    assert kendall_tau(median, latencies[10:, None])[0] > 0.8  # 0.3 without what is multiplied


def test_networks_beyond_the_pool_of_an_unknown_space_are_ranked_as_well(
    checkpoint: Checkpoint, pools: list[tuple[Pool, np.ndarray]], tmp_path: Path
) -> None:
    knowing = replace(checkpoint, calibration_by_space={"nasbench201": {}})
    taus, covered = [], []
    for known, latencies in pools:
        few, true = make_pool(knowing, known.texts[:40], space="nasbench_macro"), latencies[40:, None]
        adapted = adapt(knowing, few, LATENCY, labelled(latencies[:40], 15))
        assert adapted.model.config.reads_macs
        answer = Predictor(adapted).predict(known.texts[40:], [LATENCY])
        taus.append(kendall_tau(answer.median, true)[0])
        covered.append(coverage(answer.low, answer.high, true)[0])
    assert np.mean(taus) > 0.89  # 0.87 where it is read off texts alone
    assert 0.7 < np.mean(covered) < 0.95
    adapted.save_pretrained(tmp_path / "new")
    again = Predictor(Checkpoint.from_pretrained(tmp_path / "new")).predict(known.texts[40:], [LATENCY])
    np.testing.assert_allclose(again.values, answer.values, rtol=1e-5)


def test_six_latencies_of_an_unknown_space_may_follow_the_number_of_operators(checkpoint: Checkpoint) -> None:
    knowing, taus = replace(checkpoint, calibration_by_space={"nasbench201": {}}), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        known = make_pool(knowing, drawn_texts("nasbench_macro", 80, rng), space="nasbench_macro")
        operators = np.array([len(read_written_out(text)[0].operators) for text in known.texts])
        latencies = operators * np.exp(0.01 * rng.normal(size=len(operators)))
        answer = Predictor(adapt(knowing, known, LATENCY, labelled(latencies, 6))).predict(known.texts[6:], [LATENCY])
        taus.append(kendall_tau(answer.median, latencies[6:, None])[0])
    assert np.mean(taus) > 0.85  # 0.63 if latencies are expected to follow the multiply-accumulates alone


def test_six_latencies_of_an_unknown_space_may_follow_the_activations(checkpoint: Checkpoint) -> None:
    """Also of networks beyond the pool."""
    knowing, taus = replace(checkpoint, calibration_by_space={"nasbench201": {}}), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        texts = drawn_texts("nasbench_macro", 80, rng)
        activations = np.array([sizes_of(text)[1] for text in texts])
        latencies = activations * np.exp(0.01 * rng.normal(size=len(activations)))
        adapted = adapt(
            knowing, make_pool(knowing, texts[:40], space="nasbench_macro"), LATENCY, labelled(latencies[:40], 6)
        )
        assert adapted.model.config.reads_activations
        answer = Predictor(adapted).predict(texts[40:], [LATENCY])
        taus.append(kendall_tau(answer.median, latencies[40:, None])[0])
    assert np.mean(taus) > 0.93  # 0.65 if they are expected to follow the other sizes alone


def test_predictions_of_an_unknown_space_are_guesses(checkpoint: Checkpoint, pool: tuple[Pool, np.ndarray]) -> None:
    (known, latencies), knowing = pool, replace(checkpoint, calibration_by_space={"nasbench201": {}})
    assert make_pool(knowing, known.texts, space="nasbench201").guessed == known.guessed == frozenset()
    np.testing.assert_allclose(known.follow_shares, [1 / 3, 1 / 3, 1 / 6, 1 / 6])
    assert not make_pool(knowing, ["Conv3\n", "Pool\n"], space="mine").guessed  # nothing else is known of such texts
    here = make_pool(knowing, known.texts, space="nasbench_macro")
    assert here.guessed == here.pool_of(np.arange(9)).guessed == frozenset(OBJECTIVES)
    np.testing.assert_allclose(here.follow_shares, [1 / 8, 1 / 8, 1 / 4, 1 / 4, 1 / 4])
    assert np.ptp(here.inputs[:, 0]) < 0.5 * np.ptp(known.inputs[:, 0])
    adapted = adapt(knowing, here, LATENCY, labelled(latencies, 10))  # in Python, where spaces are not noted
    again = make_pool(adapted, known.texts, space="nasbench_macro")
    np.testing.assert_allclose(again.follow_shares, [1 / 8, 1 / 8, 3 / 8, 1 / 8, 1 / 8, 1 / 8])
    answer = Predictor(adapted).predict(known.texts[10:], [LATENCY]).median
    assert kendall_tau(answer, latencies[10:, None])[0] > 0.85


def test_a_latency_of_zero_is_told(checkpoint: Checkpoint, pool: tuple[Pool, np.ndarray]) -> None:
    known, latencies = pool
    labels = labelled(latencies, 10)
    labels[0] = 0.0
    with pytest.warns(
        UserWarning, match=r"expected labels of latency_ms@new above 0, got 1 of 0: ratios .* failed measurements\."
    ):
        adapt(checkpoint, known, LATENCY, labels)


def test_a_score_of_zero_among_negative_ones_is_none_that_failed(
    checkpoint: Checkpoint, pool: tuple[Pool, np.ndarray], recwarn: pytest.WarningsRecorder
) -> None:
    known, latencies = pool
    labels = labelled(latencies - latencies[:10].mean(), 10)
    labels[0] = 0.0
    adapt(checkpoint, known, "score@new", labels)
    assert not [warning for warning in recwarn if "above 0" in str(warning.message)]
