"""Objectives that are read off a text: what is learned, and that all questions about them agree."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest, norm

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.pool import NOISE, Pool
from nasrlm.adaptation.readout_fit import Expected, LeftOut, Readout, TextFeatures, sizes_of, stacked, unstacked
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.model.graph_network import GraphNetwork, Operators
from nasrlm.model.readout import GRID, NUM_FEATURES, Readings, Readouts, likeness
from nasrlm.predictor import Predictor
from nasrlm.text.counts import NUM_COUNTS, log_sizes
from tests.nasrlm.scenes import OBJECTIVES, SIZES, drawn_texts, layer_table

COST, ACCURACY = "latency_ms@new", "accuracy@new"
TEXTS = ["Conv3\n", "Pool\nSkip\n", "Skip\n"]
LEVELS = torch.tensor([0.001, 0.1, 0.5, 0.9, 0.999], dtype=torch.float64)


def read(readout: Readout, summaries: torch.Tensor) -> Readings:
    readings: Readings = together([readout], [0])(summaries, torch.tensor([0]), [])
    return readings


def together(fitted: Sequence[Readout], objectives: Sequence[int]) -> Readouts:
    state = stacked(fitted)
    readouts = Readouts(replace(SIZES, **sizes_of(state)), state["centre"].shape[1])
    readouts.load_state_dict(state | {"objectives": torch.tensor(objectives)})
    return readouts


def fitted_to(summaries: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, **options: Any) -> Readout:
    expected = Expected(mean.numpy(), deviation.numpy(), GRID.numpy(), **options)
    return Readout.fit(TextFeatures.of(summaries), expected)


def summaries_of(means: torch.Tensor, counts: torch.Tensor | None = None) -> torch.Tensor:
    """Of texts with these means of their states and, if any, so many counts of the first kinds."""
    filled = torch.zeros(len(means), NUM_COUNTS).double()
    if counts is not None:
        filled[:, : counts.shape[1]] = counts
    return torch.cat([means.double(), filled], dim=1)


@pytest.mark.parametrize("count", [40, 700])
def test_what_follows_from_the_states_is_read_off(count: int) -> None:
    torch.manual_seed(0)
    means = torch.randn(count + 200, 12).double() * torch.logspace(-3, 3, 12) + 5
    mean = means[:, 6] / means[:, 6].std()
    mean = mean - mean.mean() + (0.0 if count < 100 else 0.5) * (mean - mean.mean()) ** 2
    deviation = 0.1 + 0.05 * torch.rand(len(mean)).double()
    summaries = summaries_of(means)
    found = read(
        fitted_to(summaries[:count], mean[:count], deviation[:count]),
        summaries,
    )
    left = (found.mean[count:, 0] - mean[count:]).abs().median()
    assert left < 0.2
    assert (found.deviation[count:, 0] > 0.05).all()


def test_what_follows_from_the_counts_is_read_off_where_states_tell_nothing() -> None:
    torch.manual_seed(0)
    counts = torch.randint(0, 5, (500, 9)).double().log1p()
    mean = counts[:, 3] - counts[:, 5] + 0.3 * counts[:, 3] * counts[:, 7]
    mean = (mean - mean.mean()) / mean.std()
    summaries = summaries_of(torch.randn(500, 4), counts)
    fitted = fitted_to(summaries[:300], mean[:300], torch.full((300,), 0.1).double())
    found = read(fitted, summaries[300:]).mean[:, 0]
    assert np.corrcoef(found, mean[300:])[0, 1] > 0.95


def test_more_texts_than_anchors_can_be_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nasrlm.adaptation.readout_fit.MAX_ANCHORS", 60)
    means = torch.linspace(-1, 1, 200)[:, None].double()
    fitted = fitted_to(summaries_of(means), means[:, 0], torch.full((200,), 0.1).double())
    assert len(fitted.tensors["anchors"]) == 60
    torch.testing.assert_close(read(fitted, summaries_of(means)).mean, means, atol=0.03, rtol=0)


def test_a_readout_expects_what_its_process_does() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(50, count)).astype(np.float16).astype(np.float64) for count in NUM_FEATURES]
    process = GroupProcess(groups).fit(np.arange(30), groups[0][:30, 0])
    features = torch.from_numpy(np.concatenate(groups, axis=1))
    alike = likeness(features[30:], features[:30], torch.from_numpy(process.kernels))
    weights = process.weights_for(process.scale.forward(groups[0][:30, 0]))
    np.testing.assert_allclose(alike.numpy() @ weights, process.predict(np.arange(30, 50))[0], atol=1e-9)


def test_readouts_of_different_numbers_of_anchors_are_kept_together() -> None:
    torch.manual_seed(0)
    means = torch.randn(90, 3)
    noise = torch.full((90,), 0.1).double()
    few, many = (fitted_to(summaries_of(means[:count]), means[:count, 0].double(), noise[:count]) for count in (20, 90))
    readouts = together([few, many], [4, 2])
    both = readouts(summaries_of(means), torch.tensor([2, 4]), []).mean
    alone = [read(readout, summaries_of(means)).mean[:, 0] for readout in (many, few)]
    assert torch.equal(both, torch.stack(alone, dim=1))  # bit for bit


def test_of_two_readouts_of_an_objective_the_one_of_such_networks_reads() -> None:
    torch.manual_seed(0)
    kinds = [torch.randint(1, 9, (30, 3)).double() @ torch.eye(6)[3 * kind :][:3].double() for kind in (0, 1)]
    summaries = [summaries_of(torch.randn(30, 8), counts) for counts in kinds]
    alike = [fitted_to(x, torch.randn(30).double(), torch.full((30,), 0.1).double()) for x in summaries]
    other = fitted_to(summaries[0], torch.randn(30).double(), torch.full((30,), 0.1).double())
    readouts = together([alike[1], other, alike[0]], [4, 2, 4])
    of, chosen = readouts.choice(torch.cat(summaries), torch.tensor([2, 4]))
    assert of.tolist() == [0, 1, 1]
    assert chosen.tolist() == [[0, 2]] * 30 + [[0, 1]] * 30
    assert readouts(torch.cat(summaries), torch.tensor([2, 4]), []).mean.shape == (60, 3)


def test_anchors_without_weight_say_nothing() -> None:
    means = torch.linspace(-1, 1, 30)[:, None].double()
    noise = torch.linspace(0.1, 0.2, 30).double()
    plain = fitted_to(summaries_of(means), means[:, 0], noise)
    found, offsets = read(plain, summaries_of(means)), plain.tensors["offsets"].double()
    for weighs_mean, weighs_deviation in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)):
        weights = plain.tensors["weights"] * torch.tensor([[weighs_mean], [weighs_deviation]])
        part = read(replace(plain, tensors=plain.tensors | {"weights": weights}), summaries_of(means))
        torch.testing.assert_close(part.mean, found.mean if weighs_mean else offsets[0].expand(30, 1))
        torch.testing.assert_close(
            part.deviation, found.deviation if weighs_deviation else offsets[1].exp().expand(30, 1)
        )


def test_what_a_graph_network_says_is_added_as_far_as_its_share() -> None:
    torch.manual_seed(0)
    texts, summaries = [*TEXTS, ""], summaries_of(torch.randn(40, 3))
    noise = torch.full((40,), 0.1).double()
    plain = fitted_to(summaries, summaries[:, 0], noise)
    helped = replace(plain, network=GraphNetwork(), share=0.25)
    readouts = together([plain, helped, plain], [4, 2, 7])
    alone, with_graphs = readouts(summaries[:4], torch.tensor([4, 2]), texts).mean.T
    torch.testing.assert_close(with_graphs - alone, 0.25 * helped.network(list(map(Operators.of_text, texts))).double())
    torch.testing.assert_close(readouts(summaries[:4], torch.tensor([4, 7]), []).mean[:, 1], alone)  # no text is read
    again = unstacked(readouts)
    assert [readout.share for readout in again] == [0, 0.25, 0]
    assert all(torch.equal(x, readouts.state_dict()[name]) for name, x in stacked(again).items())


@pytest.mark.parametrize(("column", "name"), [(0, "macs"), (1, "activations")])
def test_what_goes_along_a_size_is_told_of_texts_like_none_before(column: int, name: str) -> None:
    """Where summaries tell nothing of it, and beside readouts that do not go along."""
    torch.manual_seed(0)
    texts = drawn_texts("nasbench_macro", 80, np.random.default_rng(0))
    of_texts, summaries = log_sizes(texts)[:, :2], summaries_of(torch.randn(len(texts), 3))
    logs, both = of_texts[:, column], of_texts[:40].copy()
    both[:, 1 - column] = 7.0  # has nothing to go along
    mean = 0.5 + 2 * (logs - logs.mean()) / logs.std() + 0.3 * summaries[:, 0].numpy()
    noise = torch.full((40,), 0.1).double()
    along = fitted_to(summaries[:40], torch.from_numpy(mean[:40]), noise, log_sizes=both)
    plain = fitted_to(summaries[:40], summaries[:40, 1], noise)
    assert [float(x) for x in along.tensors[name]] == pytest.approx([2 / logs.std(), logs[:40].mean()], rel=0.2)
    readouts = together([plain, along], [4, 2])
    found = readouts(summaries[40:], torch.tensor([4, 2]), texts[40:]).mean
    assert np.abs(found[:, 1].numpy() - mean[40:]).mean() < 0.3
    torch.testing.assert_close(found[:, 0], read(plain, summaries[40:]).mean[:, 0])
    torch.testing.assert_close(readouts(summaries[40:], torch.tensor([4]), []).mean[:, 0], found[:, 0])  # reads no text
    again = unstacked(readouts)
    assert [name in readout.tensors for readout in again] == [False, True]
    assert all(torch.equal(x, readouts.state_dict()[name]) for name, x in stacked(again).items())


def test_texts_that_all_have_labels_deviate_as_if_these_were_not_known() -> None:
    torch.manual_seed(0)
    summaries, known = summaries_of(torch.randn(12, 3)), torch.full((12,), 0.01).double()
    errors = np.tile([1.0, -1.0], 6)
    for labelled, expected in ((12, 1.0), (11, 0.01)):
        left_out = LeftOut(np.arange(labelled), errors[:labelled], np.ones(labelled))
        mean = torch.zeros(12).double()
        fitted = fitted_to(summaries, mean, known, left_out=left_out)
        deviation = read(fitted, summaries).deviation[:, 0].numpy()
        np.testing.assert_allclose(deviation, expected / norm.ppf(0.9), rtol=1e-3)


def test_networks_of_equal_sizes_have_nothing_to_go_along() -> None:
    torch.manual_seed(0)
    summaries = summaries_of(torch.randn(20, 3))
    noise = torch.full((20,), 0.1).double()
    of_equal = fitted_to(summaries, summaries[:, 0], noise, log_sizes=np.full((20, 2), 7.0))
    assert not {"macs", "activations"} & of_equal.tensors.keys()


def test_what_does_not_follow_from_the_summaries_is_left_to_the_deviations() -> None:
    torch.manual_seed(0)
    summaries, mean = summaries_of(torch.randn(300, 8)), torch.randn(300).double()
    fitted = fitted_to(summaries, mean, torch.full((300,), 0.1).double())
    found = read(fitted, summaries_of(torch.randn(50, 8)))
    assert found.mean.abs().max() < 0.6
    assert 0.8 < float(found.deviation.median()) < 1.3


@pytest.mark.parametrize("unread", [0.0, 1.0])
def test_deviations_are_as_wide_as_labels_that_were_left_out_ask_for(unread: float) -> None:
    rng = np.random.default_rng(0)
    errors, deviations = 2 * rng.normal(size=(4000, 1)) * [1, 3], np.array([1.0, 3.0])
    left_out = LeftOut(np.arange(8000), errors.ravel(), np.tile(deviations, 4000))
    missed = unread * rng.normal(size=8000) * np.tile(deviations, 4000)
    assert left_out.width(missed) == pytest.approx(np.hypot(2, unread), rel=0.05)


@pytest.mark.parametrize(
    ("errors", "width"), [([0.0] * 8, 1 / 3), ([0.1] * 4 + [5.0], 5 / norm.ppf(0.9)), ([3.0], 2.34)]
)
def test_few_labels_make_deviations_wide(errors: list[float], width: float) -> None:
    left_out = LeftOut(np.arange(len(errors)), np.array(errors), np.ones(len(errors)))
    assert left_out.width(np.zeros(len(errors))) == pytest.approx(width, rel=0.01)


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


def test_a_table_is_read_between_its_points_and_goes_on_beyond_them() -> None:
    latents = torch.tensor([-7.0, -5.99, -0.3, 0.017, 2.22, 5.99, 6.5]).double()
    table, step = GRID**3, float(GRID[1] - GRID[0])
    readings = Readings(latents[:, None], torch.ones(7, 1).double(), table[None], torch.tensor([False]))
    values = readings.quantiles(torch.tensor([[0.5]]))[:, :, 0]
    expected = np.interp(latents, GRID, table)
    expected[0] += (latents[0] - GRID[0]) / step * (table[1] - table[0])
    expected[-1] += (latents[-1] - GRID[-1]) / step * (table[-1] - table[-2])
    np.testing.assert_allclose(values[:, 0], expected)
    torch.testing.assert_close(readings.cumulative_probabilities(values), torch.full((7, 1), 0.5).double())
    assert readings.quantiles(torch.tensor([[0.0, 1.0]])).isfinite().all()


@pytest.fixture(scope="module")
def adapted(checkpoint: Checkpoint) -> Checkpoint:
    """Two objectives that are read, one of them before all that are spelled."""
    rng = np.random.default_rng(0)
    texts = layer_table(60)["text"].tolist()
    pool = Pool(texts, ("a@x", "b@x", "c@x"), rng.normal(size=(60, 3)), Predictor(checkpoint).summaries(texts))
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
