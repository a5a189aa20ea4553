"""What a guide decides: the gate and its risk, the acquisition, soft constraints."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm.arrays import FloatArray
from nasrlm.predictor import Predictor
from studies.evaluators import TableEvaluator
from studies.guide import parse_risk
from studies.ledger import Ledger
from studies.surrogates.memory import JointPredictor
from tests.studies.guided import guided_config, run
from tests.studies.scenes import (
    OBJECTIVES,
    SPACE,
    ToyPredictor,
    ToyResults,
    history_of,
    keys_of,
    toy_table,
)

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.mark.parametrize(
    ("text", "risk"),
    [("0.1", 0.1), ("params=0.1", {"params": 0.1}), ("a@b=0.05, c_ms@d=2e-1", {"a@b": 0.05, "c_ms@d": 0.2})],
)
def test_risks_are_read(text: str, risk: float | dict[str, float]) -> None:
    assert parse_risk(text) == risk


@pytest.mark.parametrize("text", ["", "much", "a@b=", "a@b", "=0.1", "a@b=0.1,0.2", "0.1,0.2", "a@b=0.1,a@b=0.2"])
def test_other_risks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="risk: expected a number, or objective=number with each objective once, got"):
        parse_risk(text)


@pytest.mark.parametrize("gate", [True, False])
def test_bounds_are_recorded_at_the_risk_of_each_objective(gate: bool, tmp_path: Path) -> None:
    run(guided_config(guide={"risk": {"latency_ms@toy": 0.2}, "gate": gate}), tmp_path)
    history = history_of(tmp_path)
    evaluated = history[history["status"] == "evaluated"]
    for name, levels in (("accuracy@toy", (0.05, 0.95)), ("latency_ms@toy", (0.2, 0.8))):
        predicted = ToyPredictor().predict(evaluated["architecture"].tolist(), [name], levels).values[:, 0]
        columns = [f"{name} predicted low", f"{name} predicted high"]
        np.testing.assert_array_equal(evaluated[columns].to_numpy(), predicted)


def test_soft_constraints_are_preferred_to_be_met(tmp_path: Path) -> None:
    counts = []
    for constraints in (["energy_mj@toy<=99"], ["soft:energy_mj@toy<=9"]):
        result = run(guided_config(constraints=constraints), tmp_path / str(len(counts)))
        history = history_of(tmp_path / str(len(counts)))
        assert not history["reason"].str.contains("outside").any()
        evaluated = history[history["status"] == "evaluated"]
        assert evaluated["feasible"].all()
        counts.append((evaluated["energy_mj@toy"] <= 9).sum())
    assert all(row["soft_met"] == (row["energy_mj@toy"]["median"] <= 9) for row in result.front)
    assert counts[1] > counts[0]


class JointToy(ToyPredictor):
    """What is more accurate than expected is also slower; remembers how often it was asked."""

    joint_calls = 0

    def joint_samples(self, texts: list[str], objectives: list[str], samples: int, *, seed: int) -> FloatArray:
        self.joint_calls += 1
        drawn = np.random.default_rng(seed).normal(size=(len(texts), 1, samples))
        return self._centres(texts, objectives)[:, :, None] + self.sigma * drawn


@pytest.mark.parametrize("joint", [False, True])
def test_objectives_are_drawn_together_where_asked_for(joint: bool, tmp_path: Path) -> None:
    assert issubclass(Predictor, JointPredictor)
    predictor = JointToy()
    run(guided_config(guide={"joint": joint}), tmp_path / "a", predictor=predictor)
    assert (predictor.joint_calls > 0) == joint
    run(guided_config(), tmp_path / "b")
    run(guided_config(guide={"joint": True}), tmp_path / "c")  # of a predictor that cannot
    first, usual, unable = (history_of(tmp_path / name)["key"].tolist() for name in "abc")
    assert unable == usual
    assert (first != usual) == joint


def test_without_its_gate_nothing_is_pruned(tmp_path: Path) -> None:
    run(guided_config(guide={"gate": False}, constraints=["energy_mj@toy<=15"]), tmp_path)
    assert set(history_of(tmp_path)["status"]) == {"evaluated"}


def test_latencies_of_what_is_pruned_first_are_not_decoded(tmp_path: Path) -> None:
    predictor = ToyPredictor()
    run(guided_config(constraints=["accuracy@toy>=75"]), tmp_path, predictor=predictor)
    history = history_of(tmp_path)
    first = history[history["stage"] == 1]
    assert len(first) > 5
    assert (first["reason"].str.contains("outside accuracy@toy>=75")).all()
    asked = {name: {text for texts, names in predictor.calls if name in names for text in texts} for name in OBJECTIVES}
    assert set(first["key"]) == set(keys_of(sorted(asked["accuracy@toy"] - asked["latency_ms@toy"])))


class WildToy(ToyPredictor):
    """One sample in fifty has a wrong exponent."""

    def sample(self, texts: Sequence[str], objectives: Sequence[str], samples: int, seed: int) -> FloatArray:
        usual = super().sample(texts, objectives, samples, seed)
        rng = np.random.default_rng(seed)
        return np.where(rng.random(usual.shape) < 0.02, usual * rng.choice([-1e9, 1e9], usual.shape), usual)


@pytest.mark.parametrize(
    ("acquisition", "kind"), [("median", ToyPredictor), ("hypervolume", ToyPredictor), ("hypervolume", WildToy)]
)
def test_a_good_model_finds_the_front_in_few_evaluations(
    acquisition: str, kind: type[ToyPredictor], tmp_path: Path
) -> None:
    truth = TableEvaluator(SPACE, toy_table(), objectives=OBJECTIVES[:2])
    ratios = []
    for seed in range(3):
        config = guided_config(seed=seed, trials=15, guide={"acquisition": acquisition})
        result = run(config, tmp_path / str(seed), truth=truth, predictor=kind(sigma=0.3))
        assert result.truth is not None
        ratios.append(result.truth.hypervolume_ratio)
    assert min(ratios) > 0.94  # 15 random ones of the 120 keys reach 0.88 in the mean


def test_what_a_better_model_keeps_is_evaluated_although_it_was_pruned(tmp_path: Path) -> None:
    evaluator = ToyResults()

    def adapt(table: pd.DataFrame) -> ToyPredictor:
        return ToyPredictor(sigma=0.01)

    class Wrong(ToyPredictor):
        def _errors(self, row: Any) -> Any:
            return 60 * super()._errors(row)

    config = guided_config(trials=40, guide={"generations": 5})
    run(config, tmp_path, evaluator, adapt=adapt, predictor=Wrong(sigma=0.1))
    assert len(set(evaluator.asked)) == len(evaluator.asked)
    truth = TableEvaluator(SPACE, toy_table(), objectives=OBJECTIVES[:2])
    history = Ledger.load(tmp_path / "history.parquet", config)
    assert len(history.entries) == len({entry.key for entry in history.entries})
    result = run(config, tmp_path, evaluator, resume=True, truth=truth, adapt=adapt, predictor=Wrong(sigma=0.1))
    assert result.truth is not None
    assert result.truth.hypervolume_ratio > 0.999
