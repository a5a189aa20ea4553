"""A part of a space in which an evaluator has no results is left alone once that shows."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from studies.failures import Failures
from studies.guide import Guide
from studies.history import EVALUATED
from studies.ledger import Entry
from tests.studies.guided import guided_config, run
from tests.studies.optuna_scenes import make_gate, make_study, objective
from tests.studies.pymoo_scenes import SPACE_ROWS, Bench, Tolerant, make_gated, to_architecture
from tests.studies.scenes import SPACE, Row, ToyResults

pytestmark = pytest.mark.usefixtures("without_figures")

QUICK = Guide(generations=3, samples=8)


def fails(architecture: Row) -> bool:
    """Whether its last gene, which the best networks have, is one of two."""
    return architecture.genes[3] > 1


def evaluated(count: int, *, only_failed: bool = False) -> list[Entry]:
    rng, entries = np.random.default_rng(1), dict[str, Entry]()
    while len(entries) < count:
        x = SPACE.sample(rng)
        if fails(x) or not only_failed:
            real = np.array([1.0, math.nan if fails(x) else 2.0])
            entries[SPACE.architecture_key(x)] = Entry.of(SPACE, x, 2, status=EVALUATED, real=real)
    return list(entries.values())


@pytest.mark.parametrize("only_failed", [False, True])
def test_what_failures_have_in_common_makes_others_doubtful(only_failed: bool) -> None:
    every = list(SPACE.enumerate())
    probability = Failures(SPACE, evaluated(16, only_failed=only_failed), num_goals=2).answer_probability(every)
    doomed = np.array([fails(x) for x in every])
    assert ((probability > 0) & (probability < 1)).all()
    assert probability[~doomed].mean() > 0.6 > 0.4 > probability[doomed].mean()


def test_a_constraint_that_is_never_told_is_no_failure() -> None:
    untold = [entry for entry in evaluated(16) if np.isnan(entry.real[1])]
    every = list(SPACE.enumerate())
    assert (Failures(SPACE, untold, num_goals=1).answer_probability(every) == 1).all()
    told = evaluated(16)
    assert (Failures(SPACE, told, num_goals=1).answer_probability(every) < 1).all()


def test_where_nothing_failed_nothing_is_doubtful() -> None:
    answered = [entry for entry in evaluated(16) if not np.isnan(entry.real).any()]
    for known in ([], answered):
        assert (Failures(SPACE, known, num_goals=2).answer_probability(list(SPACE.enumerate())) == 1).all()
    assert Failures(SPACE, evaluated(4), num_goals=2).answer_probability([]).shape == (0,)


@pytest.mark.parametrize("guide", [{}, {"acquisition": "median"}, {"exhaustive": True}, {"gate": False}])
def test_a_search_spends_most_evaluations_where_there_are_results(guide: dict[str, object], tmp_path: Path) -> None:
    class Lacking(ToyResults):
        def _result(self, notation: str) -> dict[str, float]:
            lost = dict.fromkeys(self.objectives, math.nan) if fails(SPACE.parse(notation)) else {}
            return super()._result(notation) | lost

    evaluator = Lacking()
    result = run(guided_config(trials=24, guide=guide), tmp_path, evaluator)
    assert len(evaluator.asked) == 24
    failed = [fails(SPACE.parse(notation)) for notation in evaluator.asked]
    assert np.mean(failed[12:]) <= 0.25
    assert result.front


@pytest.mark.usefixtures("quiet_optuna")
def test_trials_that_fail_keep_proposals_away() -> None:
    gate, study, failed = make_gate(), make_study("RandomSampler"), list[bool]()
    run = objective(gate, [])

    def lacking(trial: optuna.Trial) -> tuple[float, ...]:
        values = run(trial)
        failed.append(fails(SPACE.decode(list(trial.params.values()))))
        return (math.nan, math.nan) if failed[-1] else values

    study.optimize(lacking, n_trials=45, callbacks=[gate.enqueue_callback(3, guide=QUICK)])
    assert np.mean(failed[10:]) < 0.5


def test_rows_without_values_keep_proposals_away() -> None:
    failed = list[bool]()

    class Lacking(Bench):
        def _evaluate(self, X: Any, out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
            super()._evaluate(X, out, *args, **kwargs)
            failed.extend(fails(to_architecture(row)) for row in X)
            out["F"][failed[-len(X) :]] = np.nan

    gated = make_gated(Lacking(0), Tolerant(sigma=0.1))
    gated.evaluate(np.array(SPACE_ROWS[3::20]))
    for _ in range(8):
        gated.evaluate(gated.propose(3, guide=QUICK))
    assert np.mean(failed[-24:]) < 0.6
