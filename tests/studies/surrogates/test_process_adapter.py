"""A predictor that learns from real results, whether it knew the objective or not."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau
from sklearn.gaussian_process import GaussianProcessRegressor

from nasrlm.prediction import Prediction
from studies.surrogates.memory import PredictorMemory
from studies.surrogates.process_adapter import ProcessAdapter
from studies.surrogates.residual_process import PredictorFeatures
from studies.surrogates.scale import Scale
from studies.surrogates.text_process import TextProcess
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, toy_table, true_values

ROWS = list(SPACE.enumerate())
TEXTS = [SPACE.format(row) for row in ROWS]
TRUE = np.array([true_values(row) for row in ROWS])


def adapter(predictor: ToyPredictor) -> ProcessAdapter[Row]:
    return ProcessAdapter(SPACE, predictor, OBJECTIVES, to_text=SPACE.format, pool_size=50)


def test_an_objective_that_the_predictor_does_not_know_is_learned_from_those_it_knows() -> None:
    predictor = ToyPredictor(sigma=0.1, objectives=OBJECTIVES[1:])
    learned = adapter(predictor)(toy_table()[:25])
    assert learned.objectives == (*OBJECTIVES[1:], OBJECTIVES[0])
    answer = learned.predict(TEXTS, OBJECTIVES[:1], (0.1, 0.5, 0.9))
    assert kendalltau(answer.median[:, 0], TRUE[:, 0])[0] > 0.6
    assert np.mean((answer.low <= TRUE[:, :1]) & (TRUE[:, :1] <= answer.high)) > 0.6
    assert np.median(answer.high - answer.low) < TRUE[:, 0].std()


def test_an_unknown_objective_is_learned_whatever_its_mean() -> None:
    predictor = ToyPredictor(sigma=0.1, objectives=OBJECTIVES[:2])
    true = TRUE[:, 2] + 1000
    learned = adapter(predictor)(toy_table()[:25].assign(**{OBJECTIVES[2]: lambda table: table[OBJECTIVES[2]] + 1000}))
    found = learned.predict(TEXTS, OBJECTIVES[2:], (0.5,)).median[:, 0]
    assert np.abs(found - true).mean() < true.std()


def test_nothing_impossible_is_expected_where_results_are_zero() -> None:
    table = toy_table()[:25].copy()
    table.loc[table.index[:2], [*OBJECTIVES[:2]]] = 0.0  # so that neither errors nor logarithms are learned
    learned = adapter(ToyPredictor(sigma=0.1, objectives=OBJECTIVES[2:]))(table)
    for values in (
        learned.predict(TEXTS, OBJECTIVES, (0.001, 0.5, 0.999)).values,
        learned.sample(TEXTS, OBJECTIVES, 9, 0),
    ):
        assert values.min() == 0.0
        assert values[:, 0].max() <= 100.0


def test_what_was_learned_of_other_spaces_alone_is_learned_as_if_it_was_not_known() -> None:
    asked: list[str] = []

    def guessed_of(space: str) -> frozenset[str]:
        asked.append(space)
        return frozenset(OBJECTIVES[:1])

    predictor = ToyPredictor(sigma=0.1)
    predictor.checkpoint = SimpleNamespace(guessed_of=guessed_of)  # type: ignore[attr-defined]
    learned = adapter(predictor)(toy_table()[:25])
    assert asked == [SPACE.address]
    assert [isinstance(learned.learned[name], TextProcess) for name in OBJECTIVES] == [True, False, False]
    assert set(learned.objectives) == set(OBJECTIVES)
    assert adapter(predictor)(toy_table()[:2]).objectives == OBJECTIVES[1:]  # too few results: not known yet


def test_what_is_guessed_altogether_is_learned_all_the_same() -> None:
    predictor = ToyPredictor(sigma=0.1)
    predictor.checkpoint = SimpleNamespace(guessed_of=lambda space: frozenset(OBJECTIVES))  # type: ignore[attr-defined]
    assert adapter(predictor)(toy_table()[:2]).objectives == ()
    learned = adapter(predictor)(toy_table()[:25])
    assert learned.objectives == OBJECTIVES
    median = learned.predict(TEXTS, OBJECTIVES[:1], (0.5,)).median[:, 0]
    assert kendalltau(median, TRUE[:, 0])[0] > 0.8  # what it guesses is a feature of what is learned


def test_results_correct_what_the_predictor_knows() -> None:
    class Biased(ToyPredictor):
        def _errors(self, row: Row) -> np.ndarray:
            return np.full(3, 4.0)

    predictor = Biased(sigma=1.0)
    table = toy_table()[:25].assign(**{"energy_mj@toy": np.nan})
    corrected = adapter(predictor)(table)
    before, after = (p.predict(TEXTS, OBJECTIVES, (0.05, 0.5, 0.95)) for p in (predictor, corrected))
    errors = [np.abs(answer.median - TRUE).mean(axis=0) for answer in (before, after)]
    assert (errors[1][:2] < 0.5 * errors[0][:2]).all()
    np.testing.assert_array_equal(after.values[:, 2], before.values[:, 2])  # no result, nothing learned


def test_errors_that_the_predictor_tells_of_are_not_learned_by_heart() -> None:
    table = toy_table()[:25]
    corrected = adapter(ToyPredictor(sigma=0.5))(table).predict(table["architecture"].tolist(), OBJECTIVES[2:], (0.5,))
    left = corrected.median[:, 0] - table[OBJECTIVES[2]]
    assert 0.25 < left.std() < 0.75


def test_samples_have_the_quantiles_of_the_predictions() -> None:
    learned = adapter(ToyPredictor())(toy_table()[:10])
    texts = TEXTS[:3]
    samples = learned.sample(texts, OBJECTIVES, 4000, seed=1)
    assert samples.shape == (3, 3, 4000)
    quantiles = learned.predict(texts, OBJECTIVES, (0.1, 0.5, 0.9)).values
    np.testing.assert_allclose(np.quantile(samples, (0.1, 0.5, 0.9), axis=2).transpose(1, 2, 0), quantiles, atol=0.3)
    np.testing.assert_array_equal(samples, learned.sample(texts, OBJECTIVES, 4000, seed=1))


def test_what_was_learned_is_drawn_by_itself() -> None:
    table = toy_table()[:10].assign(**dict.fromkeys(OBJECTIVES[1:], np.nan))
    learned, own = adapter(ToyPredictor())(table).sample(TEXTS[:1], OBJECTIVES[:2], 1000, seed=1)[0]
    assert abs(kendalltau(learned, own)[0]) < 0.1
    np.testing.assert_array_equal(own, ToyPredictor().sample(TEXTS[:1], OBJECTIVES[1:2], 1000, seed=2)[0, 0])


def test_of_no_texts_nothing_is_said() -> None:
    table = toy_table()[:10].assign(**{OBJECTIVES[1]: np.nan})
    learned = adapter(ToyPredictor())(table)
    assert learned.predict([], OBJECTIVES, (0.1, 0.9)).values.shape == (0, 3, 2)
    assert learned.sample([], OBJECTIVES, 7, seed=1).shape == (0, 3, 7)


def test_features_are_standardised_and_deviations_those_of_the_predictor() -> None:
    predictor = ToyPredictor(sigma=0.3)
    features = PredictorFeatures(PredictorMemory(predictor), OBJECTIVES, TEXTS)
    np.testing.assert_allclose(features.of(TEXTS).mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(features.of(TEXTS).std(axis=0), 1)
    median, deviation = features.own(OBJECTIVES[2], Scale("linear"), TEXTS)
    np.testing.assert_array_equal(median, predictor.predict(TEXTS, OBJECTIVES[2:], (0.5,)).median[:, 0])
    np.testing.assert_allclose(deviation, 0.3)


def test_what_is_equal_in_the_whole_pool_is_no_feature() -> None:
    def predict(texts: Sequence[str], names: tuple[str, ...], levels: tuple[float, ...]) -> Prediction:
        return Prediction(names, levels, np.array([[[64.0 if text == "odd" else 32.0]] for text in texts]))

    memory: Any = SimpleNamespace(predict=predict)
    features = PredictorFeatures(memory, ("memory_mb@toy",), ["one", "two"])
    np.testing.assert_array_equal(features.of(["one", "odd"]), 0.0)


def test_low_quantiles_without_a_logarithm_make_no_interval_endless() -> None:
    class BelowZero(ToyPredictor):
        def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Any:
            found = super().predict(texts, objectives, quantiles)
            below = np.array(quantiles) < 0.5
            return replace(found, values=np.where(below, -found.values, found.values))

    learned = adapter(BelowZero(sigma=0.1))(toy_table()[:25])
    answer = learned.predict(TEXTS, OBJECTIVES[1:2], (0.1, 0.5, 0.9))
    assert (answer.high < 10 * TRUE[:, 1:2]).all()
    assert (answer.low > 0.1 * TRUE[:, 1:2]).all()


def test_equal_results_do_not_tell_how_much_others_differ() -> None:
    """As latencies in whole milliseconds are: three of them are no reason to prune what may be faster."""
    predictor = ToyPredictor(sigma=0.1, objectives=OBJECTIVES[:1])
    for unit in (1.0, 1000.0):
        learned = adapter(predictor)(toy_table()[:3].assign(**{OBJECTIVES[1]: 0.1 * unit}))
        answer = learned.predict(TEXTS, OBJECTIVES[1:2], (0.1, 0.5, 0.9))
        np.testing.assert_allclose(answer.median, 0.1 * unit)
        assert (answer.high > 1.1 * answer.median).all()
        assert (answer.low < 0.9 * answer.median).all()


def test_predictions_are_in_the_unit_of_the_results_and_as_wide_as_their_noise() -> None:
    """In a unit a thousandth as large all numbers are a thousandfold, whatever the features say."""
    noise = np.random.default_rng(0).normal(size=25)  # negative ones: no logarithms
    predictor = ToyPredictor(objectives=OBJECTIVES[1:])
    learning = ProcessAdapter(SPACE, predictor, ["gain@toy"], to_text=SPACE.format, pool_size=50)
    small, large = (
        learning(toy_table()[:25].assign(**{"gain@toy": unit * noise}))
        .predict(toy_table()["architecture"][:25].tolist(), ["gain@toy"], (0.1, 0.9))
        .values[:, 0]
        for unit in (1.0, 1000.0)
    )
    np.testing.assert_allclose(large, 1000 * small, rtol=1e-3, atol=1)
    assert (small[:, 1] - small[:, 0] > noise.std()).all()


def test_scales_of_many_results_are_fitted_to_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a fit grows with the square and more of the results."""
    monkeypatch.setattr("studies.surrogates.residual_process.ROWS_TO_FIT_SCALES", 30)
    optimised: list[int] = []

    def fit(
        regressor: Any, inputs: np.ndarray, targets: np.ndarray, original: Any = GaussianProcessRegressor.fit
    ) -> Any:
        optimised.extend([len(targets)] if regressor.optimizer else [])
        return original(regressor, inputs, targets)

    monkeypatch.setattr(GaussianProcessRegressor, "fit", fit)
    table = toy_table()[:100].assign(**dict.fromkeys(OBJECTIVES[1:], np.nan))
    learned = adapter(ToyPredictor(sigma=0.1))(table)
    assert optimised == [30]
    errors = learned.predict(TEXTS, OBJECTIVES[:1], (0.5,)).median[:, 0] - TRUE[:, 0]
    assert np.abs(errors).mean() < 0.3 * TRUE[:, 0].std()


def test_too_few_results_teach_nothing() -> None:
    learned = adapter(ToyPredictor(objectives=OBJECTIVES[1:]))(pd.DataFrame(toy_table()[:2]))
    assert learned.objectives == OBJECTIVES[1:]
    learned = adapter(ToyPredictor(objectives=OBJECTIVES[1:]))(pd.DataFrame(toy_table()[:3]))
    assert learned.objectives == (*OBJECTIVES[1:], OBJECTIVES[0])


@pytest.mark.parametrize(
    ("patience", "progress", "is_told"), [(0.0, True, True), (0.0, False, False), (5.0, True, False)]
)
def test_a_bar_tells_that_texts_are_written_if_that_takes_long(
    patience: float,
    progress: bool,
    is_told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("studies.surrogates.process_adapter.BAR_AFTER", patience)
    predictor = ToyPredictor(sigma=0.1)
    ProcessAdapter(SPACE, predictor, OBJECTIVES, to_text=SPACE.format, progress=progress)(toy_table()[:25])
    assert ("learn" in capsys.readouterr().err) == is_told
