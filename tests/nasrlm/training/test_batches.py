"""Batches: seeded by step, every row once an epoch, labels only where there are some."""

import warnings

import numpy as np
import pytest
import torch

from nasrlm.arrays import FloatArray
from nasrlm.model.number import NumberCode
from nasrlm.training.batches import Batch, Batches

CODE = NumberCode(num_digits=4)
ROWS, OBJECTIVES = 37, 4
LABELS = np.arange(1.0, 1 + ROWS * OBJECTIVES).reshape(ROWS, OBJECTIVES)
LABELS[np.random.default_rng(0).random(LABELS.shape) < 0.4] = np.nan
LABELS[:, 0] = np.arange(1, 1 + ROWS)  # every row has one label
TOKEN_IDS = [[1 + row] * (1 + row % 5) for row in range(ROWS)]


def make(labels: FloatArray = LABELS, *, per_row: int = 3, alone: float = 0.5, seed: int = 0) -> Batches:
    weights = np.ones(OBJECTIVES)
    return Batches(
        TOKEN_IDS,
        labels,
        weights,
        CODE,
        batch_size=8,
        objectives_per_row=per_row,
        alone_probability=alone,
        seed=seed,
    )


def rows_of(batch: Batch) -> list[int]:
    return (batch.text_ids[:, 0] - 1).tolist()


def same(first: Batch, second: Batch) -> bool:
    return all(torch.equal(a, b) for a, b in zip(vars(first).values(), vars(second).values(), strict=True))


def test_the_same_step_gives_the_same_batch_whatever_was_asked_before() -> None:
    batches, again = make(), make()
    later = [batches[step] for step in range(12)]
    for step in (11, 0, 7, 6, 3):
        assert same(again[step], later[step])
    assert not same(make(seed=1)[0], later[0])


def test_every_row_is_seen_once_an_epoch() -> None:
    batches = make()
    assert batches.steps_per_epoch == 5
    epochs = [[row for step in range(5) for row in rows_of(batches[5 * epoch + step])] for epoch in range(3)]
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_rows_of_a_batch_are_of_similar_length() -> None:
    batches = make()
    lengths = [[len(TOKEN_IDS[row]) for row in rows_of(batches[step])] for step in range(5)]
    assert all(max(part) - min(part) <= 2 for part in lengths)


def test_numbers_are_the_labels_of_their_rows_in_decoding_order() -> None:
    batches = make()
    for step in range(10):
        batch = batches[step]
        assert (batch.objectives.diff(dim=1) > 0).all()
        labels = LABELS[np.array(rows_of(batch))[:, None], batch.objectives.numpy()]
        np.testing.assert_array_equal(batch.present.numpy(), np.isfinite(labels))
        np.testing.assert_array_equal(CODE.decode(batch.numbers.numpy())[batch.present], labels[batch.present])


def test_a_missing_label_is_never_drawn_in_place_of_one_that_is_there() -> None:
    batches = make(per_row=2)
    for step in range(20):
        batch = batches[step]
        known = np.isfinite(LABELS[rows_of(batch)]).sum(axis=1)
        np.testing.assert_array_equal(batch.present.sum(dim=1).numpy(), np.minimum(known, 2))


@pytest.mark.parametrize(("exponents", "label"), [((2, 5), 300.0), ((-8, -1), 0.25)])
def test_of_what_is_missing_nobody_is_warned(exponents: tuple[int, int], label: float) -> None:
    labels = np.where(np.isfinite(LABELS), label, np.nan)
    code, weights, options = NumberCode(4, *exponents), np.ones(OBJECTIVES), {"alone_probability": 0, "seed": 0}
    with warnings.catch_warnings(action="error"):
        batches = Batches(TOKEN_IDS, labels, weights, code, batch_size=8, objectives_per_row=3, **options)
    numbers, present = batches[0].numbers.numpy(), batches[0].present.numpy()
    assert set(code.decode(numbers)[present]) == {label}
    assert not present.all()


def test_a_number_sees_those_before_it_that_are_there() -> None:
    batch = make(alone=0.0)[0]
    N, K, _ = batch.visible.shape
    for n in range(N):
        for row in range(K):
            for other in range(K):
                assert bool(batch.visible[n, row, other]) == (other < row and bool(batch.present[n, other]))


def test_all_or_none_of_a_row_is_decoded_alone() -> None:
    assert not make(alone=1.0)[0].visible.any()
    seeing = np.mean([make()[step].visible.any(dim=(1, 2)).float().mean() for step in range(40)])
    assert seeing == pytest.approx(0.5, abs=0.15)


def test_no_more_objectives_are_decoded_than_the_row_with_most_labels_has() -> None:
    labels = np.full((ROWS, OBJECTIVES), np.nan)
    labels[:, 1] = labels[::2, 3] = 1.0
    assert make(labels)[0].objectives.shape == (8, 2)
    labels[:, 3] = np.nan
    assert make(labels)[0].objectives.tolist() == [[1]] * 8


def test_heavy_objectives_are_drawn_more_often() -> None:
    weights = np.array([1.0, 1.0, 1.0, 50.0])
    labels = np.where(np.isfinite(LABELS), LABELS, 1.0)
    batches = Batches(TOKEN_IDS, labels, weights, CODE, batch_size=8, objectives_per_row=1, alone_probability=0, seed=0)
    drawn = np.concatenate([batches[step].objectives.numpy().ravel() for step in range(50)])
    assert np.mean(drawn == 3) == pytest.approx(50 / 53, abs=0.06)


def test_heavy_rows_are_drawn_more_often_in_an_epoch_of_the_same_length() -> None:
    weights = np.where(np.arange(ROWS) < 10, 3.0, 0.5)
    batches = Batches(
        TOKEN_IDS,
        LABELS,
        np.ones(OBJECTIVES),
        CODE,
        batch_size=8,
        objectives_per_row=1,
        alone_probability=0,
        seed=0,
        row_weights=weights,
    )
    for epoch in range(3):
        rows = [row for step in range(5) for row in rows_of(batches[5 * epoch + step])]
        drawn = np.bincount(rows, minlength=ROWS)
        assert drawn.sum() == ROWS
        assert (np.abs(drawn - ROWS * weights / weights.sum()) < 1).all()  # rounded up or down


def test_parts_of_a_batch_are_the_batch() -> None:
    batch = make()[0]
    N = len(batch.text_ids)
    for count in (1, 3, N):
        parts = [batch.part(index, count) for index in range(count)]
        for name, whole in vars(batch).items():
            rows = [row for index in range(count) for row in range(index, N, count)]
            assert torch.equal(torch.cat([getattr(part, name) for part in parts]), whole[rows])


def test_a_part_too_many_has_a_row_without_labels() -> None:
    batch = make()[0]
    extra = batch.part(9, 10)
    assert torch.equal(extra.text_ids, batch.text_ids[:1])
    assert not extra.present.any()


def test_more_objectives_a_row_than_there_are_is_all_of_them() -> None:
    assert make(per_row=9)[0].objectives.shape[1] == OBJECTIVES
