"""The gate prunes what cannot move the front, and nothing else."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal
from nasrlm.prediction import Prediction
from studies.constraints import Constraint
from studies.gate import Gate
from tests.studies.scenes import Row, ToyPredictor, ToySpace, true_values

ACCURACY, LATENCY, ENERGY = "accuracy@toy", "latency_ms@toy", "energy_mj@toy"
GOALS = (Goal.parse(f"max:{ACCURACY}"), Goal.parse(f"min:{LATENCY}"))
few_values = st.integers(0, 4).map(float)


class Lookup:
    """Quantiles by text and objective; remembers what it was asked."""

    def __init__(self, **quantiles: dict[str, tuple[float, ...]]) -> None:
        self.quantiles = quantiles
        self.calls: list[tuple[list[str], list[str]]] = []

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        assert objectives is not None
        self.calls.append((list(texts), list(objectives)))
        values = np.array([[self.quantiles[text][name] for name in objectives] for text in texts])
        return Prediction(tuple(objectives), tuple(quantiles), values)


def make_gate(*front: tuple[str, float, float], constraints: Sequence[str] = (), **options: object) -> Gate:
    gate = Gate(GOALS, [Constraint.parse(text) for text in constraints], **options)  # type: ignore[arg-type]
    gate.add([name for name, *_ in front], np.array([values for _, *values in front]).reshape(-1, 2))
    return gate


def test_accuracies_alone_prune_before_latencies_are_decoded() -> None:
    gate = make_gate(("fast", 80.0, 1.0), ("best", 95.0, 9.0), best={LATENCY: 1.0})
    lookup = Lookup(
        weak={ACCURACY: (70, 75, 79.9), LATENCY: (0.1, 0.2, 0.3)},
        slow={ACCURACY: (80, 85, 90), LATENCY: (9.5, 10, 11)},
        good={ACCURACY: (80, 85, 90), LATENCY: (4, 5, 6)},
    )
    weak, slow, good = gate.check(["weak", "slow", "good"], lookup)
    assert lookup.calls == [(["weak", "slow", "good"], [ACCURACY]), (["slow", "good"], [LATENCY])]
    assert (weak.stage, weak.dominated_by, weak.kept) == (1, "fast", False)
    assert weak.reason == "accuracy@toy 79.9, latency_ms@toy 1 conceivably at best, dominated by fast with 80, 1"
    np.testing.assert_array_equal(weak.values, [[70, 75, 79.9], [np.nan] * 3])
    assert (slow.stage, slow.dominated_by) == (2, "best")
    assert slow.reason == "accuracy@toy 90, latency_ms@toy 9.5 at best, dominated by best with 95, 9"
    assert (good.stage, good.reason, good.dominated_by, good.kept) == (0, "", None, True)
    np.testing.assert_array_equal(good.values, [[80, 85, 90], [4, 5, 6]])


def test_both_stages_are_decoded_at_once_where_accuracies_cannot_prune() -> None:
    """Nothing is known, or what is conceivable is faster than the whole front."""
    lookup = Lookup(one={ACCURACY: (1, 2, 3), LATENCY: (5, 6, 7)})
    assert make_gate().check(["one"], lookup)[0].kept
    gate = make_gate(("front", 80.0, 1.0), best={LATENCY: 0.5})
    assert gate.check(["one"], lookup)[0].stage == 2
    assert lookup.calls == [(["one"], [ACCURACY, LATENCY])] * 2


@pytest.mark.parametrize(
    ("goals", "constraints", "results", "calls"),
    [
        ((f"min:{LATENCY}", f"max:{ACCURACY}"), (), [[1.0, 80.0]], [[ACCURACY], [LATENCY]]),
        ((f"min:{LATENCY}", f"min:{ENERGY}"), (), [[9.0, 1.0]], [[LATENCY], [ENERGY]]),
        ((f"min:{LATENCY}", f"min:{ENERGY}"), (), [[9.0, 2.0]], [[LATENCY, ENERGY]]),
        (
            (f"max:{ACCURACY}", f"min:{LATENCY}", f"min:{ENERGY}"),
            (),
            [[80.0, 1.0, 2.0], [80.0, 2.0, 1.0]],  # none of these is best in both
            [[ACCURACY, LATENCY, ENERGY]],
        ),
        ((f"max:{ACCURACY}", f"min:{LATENCY}"), (f"{ACCURACY}>=1",), [[80.0, 2.0]], [[ACCURACY], [LATENCY]]),
        ((f"max:{ACCURACY}", f"min:{LATENCY}"), (f"soft:{ACCURACY}>=1",), [[80.0, 2.0]], [[ACCURACY, LATENCY]]),
    ],
)
def test_what_may_prune_is_decoded_first(
    goals: Sequence[str], constraints: Sequence[str], results: list[list[float]], calls: list[list[str]]
) -> None:
    parsed = [Goal.parse(goal) for goal in goals]
    best = {goal.objective: 1.0 for goal in parsed if not goal.maximise}
    gate = Gate(parsed, [Constraint.parse(text) for text in constraints], best=best)
    gate.add(list("ab")[: len(results)], np.array(results))
    lookup = Lookup(good={ACCURACY: (90, 91, 92), LATENCY: (1, 2, 3), ENERGY: (1, 2, 3)})
    assert gate.check(["good"], lookup)[0].kept
    assert [names for _, names in lookup.calls] == calls


def test_the_fastest_so_far_is_no_bound() -> None:
    gate = make_gate(("slow", 80.0, 50.0), ("fast", 70.0, 1.0))
    lookup = Lookup(faster={ACCURACY: (60, 65, 69), LATENCY: (0.5, 0.6, 0.7)})
    assert gate.check(["faster"], lookup)[0].kept
    assert make_gate(("fast", 70.0, 1.0), best={LATENCY: 1.0}).check(["faster"], lookup)[0].stage == 1


def test_equal_corners_are_kept_and_twins_stay_on_the_front() -> None:
    gate = make_gate(("a", 80.0, 1.0), ("twin", 80.0, 1.0), ("worse", 79.0, 1.0))
    assert gate.names == ("a", "twin")
    (same,) = gate.check(["same"], Lookup(same={ACCURACY: (1, 2, 80), LATENCY: (1, 2, 3)}))
    assert same.kept


def test_a_constraint_violated_at_both_ends_prunes() -> None:
    gate = make_gate(constraints=[f"{LATENCY}<=10", f"{ACCURACY}>=50"])
    lookup = Lookup(
        weak={ACCURACY: (30, 40, 49), LATENCY: (1, 2, 3)},
        slow={ACCURACY: (40, 50, 60), LATENCY: (10.5, 11, 12)},
        both={ACCURACY: (40, 45, 60), LATENCY: (10, 11, 12)},
    )
    weak, slow, both = gate.check(["weak", "slow", "both"], lookup)
    assert (weak.stage, weak.reason) == (1, "accuracy@toy is 49 at best, outside accuracy@toy>=50")
    assert (slow.stage, slow.reason) == (2, "latency_ms@toy is 10.5 at best, outside latency_ms@toy<=10")
    assert both.kept
    assert lookup.calls[1] == (["slow", "both"], [LATENCY])


@pytest.mark.parametrize("best", [95.0, [95.0]])
def test_best_values_without_names_are_refused(best: object) -> None:
    with pytest.raises(ValueError, match=rf"gate: expected best values of {ACCURACY}, {LATENCY}, by name, got "):
        make_gate(("front", 80.0, 1.0), best=best)


def test_front_members_that_break_a_soft_constraint_prune_less() -> None:
    lookup = Lookup(
        slow={ACCURACY: (60, 65, 70), LATENCY: (13, 14, 15)},
        bad={ACCURACY: (30, 40, 45), LATENCY: (19, 20, 21)},
    )
    hardly = make_gate(("front", 80.0, 12.0))
    assert [decision.stage for decision in hardly.check(["slow", "bad"], lookup)] == [2, 2]
    gate = make_gate(("front", 80.0, 12.0), constraints=[f"soft:{LATENCY}<=8"])
    assert gate.names == ("front",)
    np.testing.assert_allclose(gate.front, [[-40.0, 18.0]])
    slow, bad = gate.check(["slow", "bad"], lookup)
    assert slow.kept
    assert bad.kept
    worse = Lookup(worse={ACCURACY: (30, 35, 39), LATENCY: (19, 20, 21)})
    (pruned,) = gate.check(["worse"], worse)
    assert pruned.reason == "accuracy@toy 39, latency_ms@toy 19 at best, dominated by front with 80, 12"


def test_infeasible_and_incomplete_results_do_not_join_the_front() -> None:
    gate = make_gate(("slow", 99.0, 11.0), ("none", np.nan, 1.0), ("in", 50.0, 5.0), constraints=[f"{LATENCY}<=10"])
    assert gate.names == ("in",)
    np.testing.assert_array_equal(gate.front, [[-50.0, 5.0]])


def test_a_copy_with_another_front_has_that_alone() -> None:
    gate = make_gate(("a", 80.0, 1.0))
    assert gate.with_front(["b"], np.array([[90.0, 2.0]])).names == ("b",)
    assert gate.names == ("a",)


def test_objectives_of_constraints_alone_are_decoded_but_do_not_dominate() -> None:
    gate = Gate(GOALS, [Constraint.parse(text) for text in (f"{ENERGY}<=7", f"{LATENCY}<=5")])
    gate.add(["a"], np.array([[80.0, 1.0, 6.0]]))
    cheap = {ACCURACY: (70.0, 75.0, 81.0), LATENCY: (2.0, 3.0, 4.0), ENERGY: (1.0, 2.0, 3.0)}
    dear = cheap | {ENERGY: (7.5, 8.0, 9.0), LATENCY: (6.0, 7.0, 8.0)}  # of two that are violated the first is told
    decisions = gate.check(["cheap", "dear"], Lookup(cheap=cheap, dear=dear))
    assert [decision.stage for decision in decisions] == [0, 2]
    assert "energy_mj@toy is 7.5 at best" in decisions[1].reason


def test_unknown_predictions_are_conceivably_the_best() -> None:
    gate = make_gate(("a", 80.0, 1.0))
    (nothing,) = gate.check(["nothing"], Lookup(nothing={ACCURACY: (np.nan,) * 3, LATENCY: (1, 3, 4)}))
    assert nothing.kept


@given(
    arrays(np.float64, (5, 3), elements=few_values),
    arrays(np.float64, (6, 3), elements=few_values),
    arrays(np.float64, (6, 3), elements=few_values),
)
def test_decisions_follow_their_definition(results: FloatArray, centres: FloatArray, spread: FloatArray) -> None:
    goals = (*GOALS, Goal.parse(f"min:{ENERGY}"))
    best = results[:, 1:].min(axis=0)
    gate = Gate(goals, best=dict(zip((LATENCY, ENERGY), best.tolist(), strict=True)))
    gate.add([f"result {row}" for row in range(5)], results)
    names = (ACCURACY, LATENCY, ENERGY)
    quantiles = np.stack([centres - spread, centres, centres + spread], axis=2)
    lookup = Lookup(**{str(row): dict(zip(names, values, strict=True)) for row, values in enumerate(quantiles)})
    decisions = gate.check([str(row) for row in range(6)], lookup)
    for row, decision in enumerate(decisions):
        accuracy, *rest = quantiles[row, 0, 2], quantiles[row, 1, 0], quantiles[row, 2, 0]
        if dominated((accuracy, *best), results):
            assert decision.stage == 1
        else:
            assert decision.stage == (2 if dominated((accuracy, *rest), results) else 0)


def dominated(corner: Sequence[float], results: FloatArray) -> bool:
    """The definition: accuracy is maximised, the rest minimised."""
    for accuracy, latency, energy in results:
        ahead = (accuracy - corner[0], corner[1] - latency, corner[2] - energy)
        if min(ahead) >= 0 and max(ahead) > 0:
            return True
    return False


@pytest.mark.parametrize("risk", [0.05, 0.2])
def test_front_members_are_pruned_no_oftener_than_the_risk_says(risk: float) -> None:
    """Over calibrated predictors with errors of their own, everything but the member being known."""
    space = ToySpace()
    rows = list({space.architecture_key(row): row for row in space.enumerate()}.values())
    whole = Gate(GOALS)
    whole.add([space.format(row) for row in rows], np.array([true_values(row)[:2] for row in rows]))
    pruned = []
    for name in whole.names:
        others = [row for row in rows if space.format(row) != name]
        gate = Gate(GOALS, risk=risk)
        gate.add([space.format(row) for row in others], np.array([true_values(row)[:2] for row in others]))
        pruned += [not gate.check([name], ShiftedPredictor(seed))[0].kept for seed in range(40)]
    assert len(pruned) >= 200
    assert 0 < np.mean(pruned) <= risk


class ShiftedPredictor(ToyPredictor):
    """Another error for each seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(sigma=4.0)
        self.seed = seed

    def _errors(self, row: Row) -> FloatArray:
        return np.random.default_rng((self.seed, *row.genes)).normal(size=3)


def test_every_objective_may_have_a_risk_of_its_own() -> None:
    gate = make_gate(("front", 80.0, 1.0), risk={LATENCY: 0.2}, best={LATENCY: 0.1})
    assert gate.levels == ((0.05, 0.5, 0.95), (0.2, 0.5, 0.8))
    predictor = ToyPredictor()
    (decision,) = gate.check(["0-1-2-3"], predictor)
    assert [names for _, names in predictor.calls] == [(ACCURACY,), (LATENCY,)]
    for values, name, levels in zip(decision.values, (ACCURACY, LATENCY), gate.levels, strict=True):
        np.testing.assert_array_equal(values, ToyPredictor().predict(["0-1-2-3"], [name], levels).values[0, 0])


def test_shares_of_a_risk_by_name_decide_as_one_number() -> None:
    asked, decided = [], []
    for risk in (0.2, {ACCURACY: 0.1, LATENCY: 0.1}):
        predictor = ToyPredictor()
        gate = make_gate(("front", 85.0, 12.0), risk=risk, best={LATENCY: 0.0})
        decided.append([decision.values.tolist() for decision in gate.check(["0-1-2-3", "0-0-1-2"], predictor)])
        asked.append(predictor.calls)
    assert decided[0] == decided[1]
    assert asked[0] == asked[1] == [(("0-1-2-3", "0-0-1-2"), (ACCURACY, LATENCY))]


def test_bad_risks_and_bounds_are_named() -> None:
    with pytest.raises(ValueError, match=r"got 0\.9 of latency_ms@toy"):
        Gate(GOALS, risk={LATENCY: 0.9})
    with pytest.raises(ValueError, match="gate: expected risks of accuracy@toy, latency_ms@toy, got energy_mj@toy"):
        Gate(GOALS, risk={ENERGY: 0.1})
    for risk in (0.0, 0.5, 1.0):
        with pytest.raises(ValueError, match=f"gate: expected a risk between 0 and 0.5, got {risk}"):
            Gate(GOALS, risk=risk)
    for other in ("0.1", [0.1, 0.2], None):
        with pytest.raises(ValueError, match=re.escape(f"gate: expected a risk between 0 and 0.5, got {other!r}")):
            Gate(GOALS, risk=other)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gate: expected best values of accuracy@toy, latency_ms@toy, got latency"):
        Gate(GOALS, best={"latency_ms@moon": 1.0})
