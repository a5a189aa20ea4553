"""Labels to be looked at again: those far from what all others tell, and those in two units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from converters.tables.counts import counts_by_name
from nasrlm.adaptation.adaptable_labels import without_strays
from nasrlm.adaptation.pool import Pool, make_pool
from nasrlm.adaptation.stray_labels import FEWEST, MOST, groups_of_labels, stray_labels
from nasrlm.arrays import FloatArray
from spaces import get_space
from tests.nasrlm.scenes import drawn_texts, network_checkpoint

SPACE = get_space("nasbench_macro")
ROWS = np.arange(0, 60, 3)  # that are labelled
PLACES = [4, 11, 15, 17]  # of labels that are wrong


@pytest.fixture(scope="module")
def pool() -> Pool:
    return make_pool(network_checkpoint(), drawn_texts(SPACE.name, 60, np.random.default_rng(0)))


@pytest.fixture(scope="module")
def costs() -> FloatArray:
    """(20,) that follow the multiply-accumulates of the labelled texts."""
    rng = np.random.default_rng(0)
    drawn = [SPACE.sample(rng) for _ in range(60)]
    macs = np.array([counts_by_name(SPACE, drawn[row], ["macs@onnx"])["macs@onnx"] for row in ROWS])
    return 1.0 + macs / 1e8


def test_more_failed_labels_than_may_stray_are_a_group() -> None:
    for count in (20, 50, 100, 300):
        for failed in (count // 25, count // 10, count // 5, count // 2):
            labels = np.linspace(5.0, 12.0, count)
            labels[:failed] *= 1000
            assert (groups_of_labels(labels) is None) == (failed <= max(min(count // 5, 8), 0.05 * count))


@pytest.mark.parametrize(
    "factors", [(), (3.0,), (20.0,), (1e9,), (10.0, 10.0), (1e3, 1e3), (1e3, 1e-3), (1e3,) * 3, (10.0,) * 4]
)
def test_labels_that_have_failed_are_found_however_many_they_are(
    pool: Pool, costs: FloatArray, factors: tuple[float, ...]
) -> None:
    labels, wrong = costs.copy(), PLACES[: len(factors)]
    labels[wrong] *= factors
    strays = stray_labels(pool, "latency_ms@mine", ROWS, labels)
    assert sorted(strays) == wrong
    assert [*strays.values()] == pytest.approx(costs[[*strays]], rel=0.2)


def test_an_accuracy_at_chance_is_found(pool: Pool, costs: FloatArray) -> None:
    labels = 80 + 10 * (costs - costs.min()) / np.ptp(costs)
    assert stray_labels(pool, "accuracy@mine", ROWS, labels) == {}
    labels[PLACES[:2]] = 10.0
    strays = stray_labels(pool, "accuracy@mine", ROWS, labels)
    assert sorted(strays) == PLACES[:2]
    assert all(75 < expected < 95 for expected in strays.values())


@pytest.mark.parametrize(("difference", "strays"), [(-9.0, []), (-12.0, PLACES[:1])])
def test_an_accuracy_is_a_stray_where_it_is_off_by_ten_percent(
    pool: Pool, costs: FloatArray, difference: float, strays: list[int]
) -> None:
    labels = 80 + 10 * (costs - costs.min()) / np.ptp(costs)
    labels[PLACES[0]] += difference
    assert [*stray_labels(pool, "accuracy@mine", ROWS, labels)] == strays


def test_a_label_is_a_stray_again_where_a_readout_has_learned_it(pool: Pool, costs: FloatArray) -> None:
    labels, learned = costs.copy(), np.zeros(len(pool.texts))
    labels[PLACES[0]] *= 1e3
    learned[ROWS] = np.log(labels) - np.log(labels).mean()
    known = {"objectives": [*pool.objectives, "latency_ms@mine"], "features": np.c_[pool.features, learned]}
    assert stray_labels(replace(pool, **known), "latency_ms@mine", ROWS, labels) == {}  # foreseen
    again = replace(pool, **known, read_off=frozenset({"latency_ms@mine"}))
    assert [*stray_labels(again, "latency_ms@mine", ROWS, labels)] == PLACES[:1]


def test_strays_are_told_by_names_in_a_column_whatever_its_index(pool: Pool, costs: FloatArray) -> None:
    labels, names = np.full(len(pool.texts), np.nan), [f"network {row}" for row in range(len(pool.texts))]
    labels[ROWS] = costs
    labels[ROWS[PLACES[0]]] *= 1e3
    column = pd.Series(names, index=range(len(names), 0, -1))
    with pytest.warns(UserWarning, match=f" of {names[ROWS[PLACES[0]]]}, given the other labels") as told:
        kept = without_strays(pool, "latency_ms@mine", labels, names=column)  # type: ignore[arg-type]
    assert len(told) == 1
    assert np.flatnonzero(np.isfinite(labels) & np.isnan(kept)).tolist() == [ROWS[PLACES[0]]]
    for wrong in (set(names), dict.fromkeys(names), "names"):
        with pytest.raises(ValueError, match=r"adapt: expected one name per text, got (set|dict|str)"):
            without_strays(pool, "latency_ms@mine", labels, names=wrong)  # type: ignore[arg-type]


def test_too_few_and_too_many_labels_tell_of_none(pool: Pool, costs: FloatArray) -> None:
    labels = costs.copy()
    labels[0] = 1e9
    assert stray_labels(pool, "latency_ms@mine", ROWS[: FEWEST - 1], labels[: FEWEST - 1]) == {}
    many = np.zeros(MOST + 1, dtype=np.intp)
    assert stray_labels(pool, "latency_ms@mine", many, np.linspace(1, 1e9, MOST + 1)) == {}


def test_labels_in_two_units_are_two_groups() -> None:
    labels = np.linspace(5.0, 12.0, 50)
    assert groups_of_labels(labels) is None
    labels[25:] /= 1000
    below, above = groups_of_labels(labels) or ((0, 0.0), (0, 0.0))
    assert (below, above) == ((25, pytest.approx(0.012)), (25, 5.0))
    labels[[0, 40]] = 1e12, 1e-9  # strays do not hide that
    assert [count for count, _ in groups_of_labels(labels) or ()] == [25, 25]
    few = np.linspace(5.0, 12.0, 50)
    few[:5] /= 1000  # these may stray
    assert groups_of_labels(few) is None
    assert groups_of_labels(np.array([1.0, 2.0, 300.0])) is None
    assert groups_of_labels(np.array([1.0, 2.0, 300.0, 400.0])) == ((2, 2.0), (2, 300.0))
