"""Objectives that are read off a text: what is learned, and that all questions about them agree."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from nasrlm.adaptation import NOISE, Pool, adapt
from nasrlm.checkpoint import Checkpoint
from nasrlm.predictor import Predictor
from nasrlm.readout import GRID, NUM_ANCHORS, Readings, Readout, Readouts
from tests.nasrlm.scenes import OBJECTIVES

COST, ACCURACY = "latency_ms@new", "accuracy@new"
TEXTS = ["Conv3\n", "Pool\nSkip\n", "Skip\n"]
LEVELS = torch.tensor([0.001, 0.1, 0.5, 0.9, 0.999], dtype=torch.float64)


def read(readout: Readout, summaries: torch.Tensor) -> Readings:
    readouts = Readouts(1, summaries.shape[1])
    readouts.load_state_dict({name: x[None] for name, x in (readout.tensors | {"objectives": torch.tensor(0)}).items()})
    readings: Readings = readouts(summaries, torch.tensor([0]))
    return readings


@pytest.mark.parametrize("count", [40, NUM_ANCHORS + 300])
def test_what_follows_from_the_summaries_is_read_off(count: int) -> None:
    torch.manual_seed(0)
    summaries = torch.randn(count + 200, 12).double() * torch.logspace(-3, 3, 12) + 5
    mean = summaries[:, 6] / summaries[:, 6].std()
    mean = mean - mean.mean() + (0.0 if count < 100 else 0.5) * (mean - mean.mean()) ** 2
    deviation = 0.1 + 0.05 * torch.rand(len(mean)).double()
    found = read(Readout.fit(summaries[:count], mean[:count], deviation[:count], GRID, logarithmic=False), summaries)
    left = (found.mean[count:, 0] - mean[count:]).abs().median()
    assert left < 0.15
    assert (found.deviation[count:, 0] > 0.05).all()


def test_what_does_not_follow_from_the_summaries_is_left_to_the_deviations() -> None:
    torch.manual_seed(0)
    summaries, mean = torch.randn(300, 8).double(), torch.randn(300).double()
    fitted = Readout.fit(summaries, mean, torch.full((300,), 0.1).double(), GRID, logarithmic=False)
    found = read(fitted, torch.randn(50, 8).double())
    assert found.mean.abs().max() < 0.6
    assert 0.8 < float(found.deviation.median()) < 1.3


@pytest.mark.parametrize(
    ("table", "logarithmic"),
    [(GRID, False), (2 + GRID / 2, True), ((50 + 30 * GRID).clamp(0, 100), False), (torch.full_like(GRID, 7.0), False)],
    ids=["plain", "logarithmic", "clipped", "one value"],
)
def test_probabilities_are_the_levels_of_quantiles(table: torch.Tensor, logarithmic: bool) -> None:
    mean = torch.tensor([[-1.0], [0.3], [9.0]]).double()
    kinds = torch.tensor([logarithmic])
    readings = Readings(mean, torch.full((3, 1), 0.4).double(), table[None].double(), kinds)
    values = readings.quantiles(LEVELS.expand(1, -1))
    assert (values.diff() >= 0).all()
    for column, level in enumerate(LEVELS):
        found = readings.cumulative_probabilities(values[:, :, column])
        inside = (values[:, :, column] > table.min()) & (values[:, :, column] < table.max()) | torch.tensor(logarithmic)
        torch.testing.assert_close(found[inside], level.expand_as(found)[inside], rtol=1e-6, atol=1e-6)
        assert (found[~inside & (values[:, :, column] >= table.max())] >= level - 1e-6).all()
    assert (readings.cumulative_probabilities(torch.full((3, 1), -1e6).double()) < 1e-6).all()
    assert (readings.cumulative_probabilities(torch.full((3, 1), 1e6).double()) > 0.999).all()


@pytest.fixture(scope="module")
def adapted(checkpoint: Checkpoint) -> Checkpoint:
    """Two objectives that are read, one of them before all that are spelled."""
    rng = np.random.default_rng(0)
    pool = Pool([""] * 60, rng.normal(size=(60, 3)), rng.normal(0, 0.1, size=(60, checkpoint.model.summary_width)))
    labels = np.where(np.arange(60) < 30, 20 + 4 * pool.features[:, 0], np.nan)
    return adapt(adapt(checkpoint, pool, COST, labels), pool, ACCURACY, labels)


def test_objectives_of_both_kinds_come_in_the_order_asked(adapted: Checkpoint, checkpoint: Checkpoint) -> None:
    predictor = Predictor(adapted)
    names = [COST, OBJECTIVES[1], ACCURACY, OBJECTIVES[0]]
    together = predictor.predict(TEXTS, names).values
    for column, name in enumerate(names):
        np.testing.assert_allclose(together[:, column], predictor.predict(TEXTS, [name]).values[:, 0])
    before = Predictor(checkpoint).predict(TEXTS, OBJECTIVES).values
    np.testing.assert_array_equal(together[:, [3, 1]], before)
    assert len(np.unique(together[:, 0])) > 3


def test_samples_are_of_the_distribution_that_quantiles_are_of(adapted: Checkpoint) -> None:
    predictor = Predictor(adapted)
    names, samples = [ACCURACY, OBJECTIVES[0], COST], 4000
    ordered = sorted(names, key=adapted.objectives.index)
    drawn = predictor.sample(TEXTS, ordered, samples)
    joint = predictor.joint_samples(TEXTS, ordered, samples)
    for row, column in ((0, ordered.index(COST)), (2, ordered.index(ACCURACY))):
        for values in (drawn[row, column], joint[row, column]):
            given = np.broadcast_to(values[:, None], (samples, 1))
            levels = predictor.cumulative_probabilities([TEXTS[row]] * samples, [ordered[column]], given)
            assert kstest(levels[:, 0], "uniform").pvalue > 1e-4


def test_a_known_value_is_given_back_and_temperature_widens(adapted: Checkpoint) -> None:
    predictor = Predictor(adapted)
    names = [OBJECTIVES[0], COST]
    known = {COST: [12.0, np.nan, 13.0]}
    drawn = predictor.joint_samples(TEXTS, names, 5, known=known)
    assert (drawn[[0, 2], 1] == np.array([[12.0], [13.0]])).all()
    assert len(np.unique(drawn[1, 1])) == 5
    cool, warm = (predictor.joint_samples(TEXTS, [COST], 2000, temperature=t)[0, 0] for t in (0.25, 4.0))
    assert np.log(warm).std() == pytest.approx(4 * np.log(cool).std(), rel=0.1)


def test_probabilities_of_all_numbers_sum_to_one(adapted: Checkpoint) -> None:
    code = adapted.model.code
    mantissas = np.arange(10 ** (code.num_digits - 1), 10**code.num_digits)
    exponents = np.arange(code.min_exponent, code.max_exponent + 1)
    values = np.concatenate([mantissas * 10.0 ** (exponent - code.num_digits + 1) for exponent in exponents])
    logs = Predictor(adapted).log_probabilities([TEXTS[0]] * len(values), [COST], values[:, None])
    assert np.exp(logs).sum() == pytest.approx(1, abs=0.02)


def test_intervals_hold_the_noise_of_a_label(adapted: Checkpoint) -> None:
    low, median, high = np.log(Predictor(adapted).predict(TEXTS, [COST]).values[:, 0]).T
    np.testing.assert_allclose(high - median, median - low, rtol=1e-4)
    scatter = np.log(20 + 4 * np.random.default_rng(0).normal(size=(60, 3))[:30, 0]).std()
    assert ((high - low) / (2 * norm.ppf(0.9)) > NOISE**0.5 * scatter).all()
