"""Before all objectives are learned, hard constraints on known ones are heeded: none of the first results is wasted."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest

from converters import to_measured_text
from converters.tables.counts import named_counts
from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal
from nasrlm.optuna import ParetoGate
from spaces import get_space
from studies.config import SearchConfig
from studies.constraints import Constraint
from studies.evaluators import FunctionEvaluator
from studies.guide import Guide
from studies.guided import guided_search
from studies.surrogates.known_only import KnownOnly
from tests.studies.surrogates.sevens import Sevens

SPACE = get_space("nasbench_macro")
ACCURACY, NEW = "accuracy@toy", "latency_ms@new"
GOALS = (f"max:{ACCURACY}", f"min:{NEW}")
BOUND = 1.1e6  # of params; a sixth of the space's networks meet it
CONSTRAINT = f"params@onnx<={BOUND:g}"


def params(notations: Sequence[str]) -> FloatArray:
    return named_counts(SPACE, [SPACE.parse(notation) for notation in notations], ["params@onnx"])[:, 0]


def test_nothing_is_answered_of_what_is_not_known() -> None:
    predictor = KnownOnly(Sevens(ACCURACY), (ACCURACY,))
    values = predictor.predict(["a", "b"], [NEW, ACCURACY], (0.1, 0.5)).values
    np.testing.assert_array_equal(values, np.tile([[np.nan] * 2, [7.0] * 2], (2, 1, 1)))
    assert np.isnan(predictor.predict(["a"], [NEW], (0.5,)).values).all()


@pytest.mark.parametrize("gate", [True, False])
def test_a_guided_search_begins_with_networks_that_may_meet_its_constraints(gate: bool, tmp_path: Path) -> None:
    config = SearchConfig(
        space=SPACE.name,
        goals=tuple(map(Goal.parse, GOALS)),
        constraints=(Constraint.parse(CONSTRAINT),),
        trials=12,
        guide=Guide(adapt_every=20, gate=gate),
    )
    evaluator = FunctionEvaluator(SPACE, lambda notation: {ACCURACY: 60.0, NEW: 3.0}, objectives=config.objectives)
    options = {"to_text": partial(to_measured_text, SPACE), "adapt": lambda table: Sevens(ACCURACY), "figures": False}
    guided_search(config, SPACE, evaluator, Sevens(ACCURACY), tmp_path, **options)  # type: ignore[arg-type]
    history = pd.read_parquet(tmp_path / "history.parquet")
    assert (params(history["architecture"]) <= BOUND).all() == gate


def test_a_gate_that_still_has_to_learn_heeds_constraints_on_counts() -> None:
    gate = ParetoGate(SPACE, GOALS, Sevens(ACCURACY), constraints=[CONSTRAINT])
    gate.adapt_callback()
    study = optuna.create_study(directions=["maximize", "minimize"])
    rng = np.random.default_rng(0)
    drawn = [SPACE.sample(rng) for _ in range(20)]
    large = max(drawn, key=lambda architecture: params([SPACE.format(architecture)])[0])
    with pytest.raises(optuna.TrialPruned, match=r"params@onnx is .* at best, outside params@onnx<="):
        gate.check(study.ask(), large)
    proposed = gate.enqueue(study, count=6)
    assert len(proposed) == 6
    assert (params([SPACE.format(architecture) for architecture in proposed]) <= BOUND).all()
    gate.check(study.ask(), proposed[0])
