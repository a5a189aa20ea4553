"""Where a model guides, what can be counted is counted."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from converters import to_measured_text
from converters.tables.counts import named_counts
from nasrlm.arrays import FloatArray
from nasrlm.objective import Goal
from spaces import get_space
from studies.advisor import Advisor
from studies.config import SearchConfig
from studies.evaluators import FunctionEvaluator
from studies.guide import Guide
from studies.guided import guided_search
from studies.surrogates.counting_predictor import CountMemory, counting
from studies.surrogates.memory import JointPredictor, TextMemory
from tests.studies.surrogates.sevens import Sevens

SPACE = get_space("nasbench_macro")
ACCURACY, PARAMS = "accuracy@here", "params@onnx"
NAMES = ("00000000", "12012012", "22222222")


class JointSevens(Sevens):
    def joint_samples(self, texts: Sequence[str], objectives: Sequence[str], samples: int, *, seed: int) -> FloatArray:
        return self.sample(texts, objectives, samples, seed)


def test_counts_are_exact_at_every_level_and_in_every_sample() -> None:
    texts = TextMemory(partial(to_measured_text, SPACE))
    architectures = [SPACE.parse(name) for name in NAMES]
    written = [texts(architecture) for architecture in architectures]
    (params,) = named_counts(SPACE, architectures, [PARAMS]).T
    counts = CountMemory(SPACE, texts)
    predictor = counting(JointSevens(ACCURACY, PARAMS), counts)
    assert isinstance(predictor, JointPredictor)
    assert not isinstance(counting(Sevens(ACCURACY, PARAMS), counts), JointPredictor)
    answers = [
        predictor.predict(written, [PARAMS, ACCURACY], (0.1, 0.5, 0.9)).values,
        predictor.sample(written, [PARAMS, ACCURACY], 3, 0),
        predictor.joint_samples(written, [PARAMS, ACCURACY], 3, seed=0),
    ]
    for values in answers:
        np.testing.assert_array_equal(values[:, 0], np.repeat(params[:, None], 3, axis=1))
        np.testing.assert_array_equal(values[:, 1], 7.0)
    np.testing.assert_array_equal(predictor.predict(written[:1], [PARAMS], (0.5,)).median, params[:1, None])
    more = ["depth@onnx", PARAMS]  # one of which was counted before
    np.testing.assert_array_equal(
        predictor.predict(written, more, (0.5,)).median, named_counts(SPACE, architectures, more)
    )
    with pytest.raises(KeyError):
        predictor.predict(["another"], [PARAMS], (0.5,))


def test_a_guided_search_looks_at_true_counts(tmp_path: Path) -> None:
    evaluator = FunctionEvaluator(
        SPACE, lambda notation: {ACCURACY: 60.0 + int(notation[0])}, objectives=(ACCURACY, PARAMS)
    )
    goals = (Goal.parse(f"max:{ACCURACY}"), Goal.parse(f"min:{PARAMS}"))
    config = SearchConfig(space=SPACE.name, goals=goals, trials=6, guide=Guide(adapt_every=0, generations=2))
    to_text = partial(to_measured_text, SPACE)
    guided_search(config, SPACE, evaluator, Sevens(ACCURACY, PARAMS), tmp_path, to_text=to_text, figures=False)
    history = pd.read_parquet(tmp_path / "history.parquet")
    told = history.dropna(subset=f"{PARAMS} predicted")
    assert len(told)
    (params,) = named_counts(SPACE, [SPACE.parse(name) for name in told["architecture"]], [PARAMS]).T
    for column in ("predicted", "predicted low", "predicted high"):
        np.testing.assert_array_equal(told[f"{PARAMS} {column}"], params)


def test_a_gate_of_ones_own_study_counts() -> None:
    advisor = Advisor(SPACE, [f"max:{ACCURACY}", f"min:{PARAMS}"], predictor=Sevens(ACCURACY, PARAMS))
    assert advisor.can_predict
    small, large = SPACE.parse(NAMES[0]), SPACE.parse(NAMES[2])
    advisor.gate.add(["small"], np.array([[7.0, named_counts(SPACE, [small], [PARAMS])[0, 0]]]))
    decision, same = advisor.check([large, small])
    assert decision.dominated_by == "small"
    assert same.kept
