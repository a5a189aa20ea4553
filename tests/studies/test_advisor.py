"""What a gate's model learns unknown objectives from: texts, or the graphs of all networks."""

from typing import Any

import numpy as np
import pytest

import nasrlm
from studies.advisor import Advisor
from studies.surrogates.process_adapter import every_network
from tests.nasrlm.scenes import network_checkpoint


@pytest.mark.parametrize(
    ("space", "goals", "expected"),
    [
        ("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@mine"], [(15_625, True)]),
        ("nasbench_macro", ["max:accuracy@cifar10", "min:latency_ms@mine"], []),
        ("nasbench201", ["max:accuracy@cifar10", "max:accuracy@mine"], []),  # the same for all twins
    ],
)
def test_a_gate_reads_all_graphs_where_texts_do_not_tell_costs(
    space: str, goals: list[str], expected: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    advisor = Advisor(space, goals, predictor=nasrlm.Predictor(network_checkpoint()))
    rng = np.random.default_rng(0)
    drawn = list({advisor.space.representative(advisor.space.sample(rng)): None for _ in range(30)})
    read: list[tuple[int, bool]] = []

    def of_these(config: Any, space: Any, known: None, *, progress: bool) -> Any:
        read.append((space.size, progress))
        return every_network(config, space, drawn)

    monkeypatch.setattr("studies.advisor.every_network", of_these)
    advisor.learn_every(5, None, progress=True)
    results = np.array([[90.0, 1.0 + sum(advisor.space.encode(architecture))] for architecture in drawn])
    entries = [advisor.entry(*pair, evaluated=True) for pair in zip(drawn, results, strict=True)]
    advisor.learn(entries[:15])
    assert read == expected
    values = np.array([decision.values for decision in advisor.check(drawn[15:])])
    assert np.isfinite(values).all()
    assert np.corrcoef(values[:, 1, 0], results[15:, 1])[0, 1] > 0.5
