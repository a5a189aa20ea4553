"""A part of a space in which an evaluator has no results is left alone once that shows."""

import math
from pathlib import Path

import numpy as np
import pytest

from studies.failures import Failures
from studies.ledger import EVALUATED, Entry
from tests.studies.guided import guided_config, run
from tests.studies.scenes import SPACE, Row, ToyResults


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
    probability = Failures(SPACE, evaluated(16, only_failed=only_failed)).answer_probability(every)
    doomed = np.array([fails(x) for x in every])
    assert ((probability > 0) & (probability < 1)).all()
    assert probability[~doomed].mean() > 0.6 > 0.4 > probability[doomed].mean()


def test_where_nothing_failed_nothing_is_doubtful() -> None:
    answered = [entry for entry in evaluated(16) if not np.isnan(entry.real).any()]
    for known in ([], answered):
        assert (Failures(SPACE, known).answer_probability(list(SPACE.enumerate())) == 1).all()
    assert Failures(SPACE, evaluated(4)).answer_probability([]).shape == (0,)


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
