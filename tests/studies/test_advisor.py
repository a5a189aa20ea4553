"""What a gate predicts by, and what its model learns unknown objectives from: texts, or the graphs of all networks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nasrlm
from studies.advisor import Advisor
from studies.surrogates.process_adapter import every_network
from tests.nasrlm.scenes import network_checkpoint

COST = "latency_ms@mine"  # unknown to the checkpoint


def test_a_gate_predicts_as_the_predictor_of_its_space() -> None:
    narrow = {"latency_ms@raspi4": [0.4 + 0.002 * level for level in range(1, 100)]}
    checkpoint = replace(network_checkpoint(), calibration_by_space={"nasbench201": narrow})
    predictor, goals = nasrlm.Predictor(checkpoint), ["min:latency_ms@raspi4"]
    advisor = Advisor("nasbench201", goals, predictor=predictor)
    architecture = advisor.space.sample(np.random.default_rng(0))
    text, level = nasrlm.to_measured_text(advisor.space, architecture), advisor.gate.levels[0]
    of_all, of_space = (
        x.predict([text], advisor.objectives, level) for x in (predictor, predictor.of_space("nasbench201"))
    )
    assert (of_space.values != of_all.values).any()
    (decision,) = advisor.check([architecture])
    np.testing.assert_allclose(decision.values, of_space.values[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("space", "unknown", "graphs"),
    [
        ("nasbench201", f"min:{COST}", True),
        ("nasbench201", "max:accuracy@mine", True),  # any of several twins may be checked
        ("nasbench201", f"min:{COST}", False),
    ],
)
def test_a_gate_learns_from_texts_or_from_graphs_of_all_networks(
    space: str, unknown: str, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    goals = ["max:accuracy@cifar10", unknown]
    advisor = Advisor(space, goals, predictor=nasrlm.Predictor(network_checkpoint()))
    rng = np.random.default_rng(0)
    drawn = list({advisor.space.sample(rng): None for _ in range(30)})
    read: list[tuple[int, bool]] = []

    def of_these(space: Any, searched: Any, known: None, *, progress: bool) -> Any:
        read.append((space.size, progress))
        return every_network(space, searched, drawn)

    monkeypatch.setattr("studies.advisor.every_network", of_these)
    advisor.learn_every(5, None, graphs=graphs, progress=True)
    results = np.array([[90.0, 1.0 + sum(advisor.space.encode(architecture))] for architecture in drawn])
    entries = [advisor.entry(*pair, evaluated=True) for pair in zip(drawn, results, strict=True)]
    advisor.learn(entries[:15])
    assert read == ([(15_625, True)] if graphs else [])
    values = np.array([decision.values for decision in advisor.check(drawn[15:])])
    assert np.isfinite(values).all()
    assert np.corrcoef(values[:, 1, 0], results[15:, 1])[0, 1] > 0.4


def test_graphs_are_refused_where_they_cannot_be_read() -> None:
    predictor = nasrlm.Predictor(network_checkpoint())
    of_many = Advisor("fbnet", [f"min:{COST}"], predictor=predictor)
    with pytest.raises(ValueError, match=r"graphs: expected a space of at most 20,000 architectures, got fbnet"):
        of_many.learn_every(5, None, graphs=True)
    of_few = Advisor("nasbench201", [f"min:{COST}"], predictor=predictor)
    with pytest.raises(ValueError, match="expected graphs or adapt, got both"):
        of_few.learn_every(5, lambda table: predictor, graphs=True)
