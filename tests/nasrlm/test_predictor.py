"""Texts in, quantiles out; what cannot be answered is refused in one line."""

import math
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from torch import Tensor

from converters import to_measured_text, to_onnx_text
from nasrlm import answerer
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.engines.engine import TorchEngine
from nasrlm.engines.names import EngineName
from nasrlm.in_batches import AHEAD, in_threads
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.predictor import Predictor
from nasrlm.reader import pad
from spaces import get_space
from tests.nasrlm.scenes import OBJECTIVES

TEXTS = ["Conv3\n" * length for length in (1, 9, 4, 20, 2)]
LEVELS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def predictor(checkpoint: Checkpoint) -> Predictor:
    return Predictor(checkpoint)


def test_a_folder_in_place_of_a_checkpoint_is_told(checkpoint: Checkpoint) -> None:
    told = r"expected a Checkpoint, got 'folder'\. To load a folder, use Checkpoint\.from_pretrained or Predictor"
    for asked, who in ((Predictor, "Predictor"), (partial(make_pool, texts=TEXTS), "adapt")):
        with pytest.raises(ValueError, match=f"{who}: {told}"):
            asked("folder")  # type: ignore[arg-type]


def test_predictions_have_a_row_a_text_and_quantiles_that_ascend(predictor: Predictor) -> None:
    prediction = predictor.predict(TEXTS, quantiles=(0.05, 0.5, 0.95))
    assert prediction.objectives == predictor.objectives == OBJECTIVES
    assert prediction.values.shape == (5, 2, 3)
    assert (np.diff(prediction.values, axis=-1) >= 0).all()


def test_a_text_gets_the_same_answer_in_any_company(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    together = predictor.predict(TEXTS).values
    monkeypatch.setattr(TorchEngine, "tokens_per_batch", 40)
    np.testing.assert_allclose(predictor.predict(TEXTS).values, together, rtol=1e-3, atol=1e-3)
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(predictor.predict([text]).values[0], together[row], rtol=1e-3, atol=1e-3)


def test_a_batch_never_holds_more_tokens_than_it_may(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    longest, encode = max(map(len, predictor.to_ids(TEXTS))), TorchEngine.encode
    read: list[int] = []
    monkeypatch.setattr(TorchEngine, "tokens_per_batch", longest)
    monkeypatch.setattr(TorchEngine, "encode", lambda self, ids: read.append(ids.numel()) or encode(self, ids))
    predictor.predict(TEXTS)
    assert len(read) > 1
    assert max(read) <= longest


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
@pytest.mark.parametrize(
    "copied", [lambda made: pickle.loads(pickle.dumps(made)), deepcopy], ids=["pickle", "deepcopy"]
)
def test_a_copy_answers_alike(checkpoint: Checkpoint, engine: EngineName, copied: Callable[[Any], Any]) -> None:
    predictor = Predictor(checkpoint, engine, memory_bytes=100_000)
    size = len(pickle.dumps(predictor))
    expected = predictor.predict(TEXTS).values
    assert len(pickle.dumps(predictor)) == size  # what it has read is not copied
    other = copied(predictor)
    np.testing.assert_array_equal(other.predict(TEXTS).values, expected)
    np.testing.assert_array_equal(other.of_space("nasbench201").predict(TEXTS).values, expected)


def test_objectives_are_answered_in_the_order_asked(predictor: Predictor) -> None:
    both = predictor.predict(TEXTS, OBJECTIVES).values
    np.testing.assert_allclose(predictor.predict(TEXTS, OBJECTIVES[::-1]).values, both[:, ::-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(predictor.predict(TEXTS, OBJECTIVES[1:]).values, both[:, 1:], rtol=1e-4, atol=1e-4)


def test_no_texts_have_no_predictions(predictor: Predictor) -> None:
    assert predictor.predict([]).values.shape == (0, 2, 3)


def test_calibration_moves_the_levels(checkpoint: Checkpoint) -> None:
    shifted = {OBJECTIVES[1]: [0.01 * level / 2 for level in range(1, 100)]}
    plain, moved = (
        Predictor(Checkpoint(checkpoint.model, checkpoint.tokenizer, OBJECTIVES, calibration))
        for calibration in ({}, shifted)
    )
    half = plain.predict(TEXTS, quantiles=(0.05, 0.25, 0.45)).values
    values = moved.predict(TEXTS, quantiles=LEVELS).values
    np.testing.assert_allclose(values[:, 1], half[:, 1])
    np.testing.assert_allclose(values[:, 0], plain.predict(TEXTS, quantiles=LEVELS).values[:, 0])


def test_samples_follow_the_calibrated_quantiles(predictor: Predictor) -> None:
    samples = predictor.sample(TEXTS[:2], OBJECTIVES, 4000)
    assert samples.shape == (2, 2, 4000)
    values = predictor.predict(TEXTS[:2], OBJECTIVES, LEVELS).values
    shares = (samples[..., None] <= values[:, :, None, :]).mean(axis=2)
    atoms = (values == 0) | (np.diff(values, axis=-1, prepend=np.nan) == 0)
    np.testing.assert_allclose(shares[~atoms], np.broadcast_to(LEVELS, shares.shape)[~atoms], atol=0.03)


def test_samples_depend_on_the_seed_alone(predictor: Predictor) -> None:
    first, again, other = (predictor.sample(TEXTS, OBJECTIVES[:1], 5, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_joint_samples_come_in_the_order_asked_and_keep_what_is_known(predictor: Predictor) -> None:
    accuracy, latency = OBJECTIVES
    measured = [90.0, 91.0, float("nan"), 93.0, 94.0]
    drawn = predictor.joint_samples(TEXTS, [latency, accuracy], 7, known={accuracy: measured}, seed=1)
    assert drawn.shape == (5, 2, 7)
    assert (drawn[[0, 1, 3, 4], 1] == np.array([90.0, 91.0, 93.0, 94.0])[:, None]).all()
    assert np.isfinite(drawn).all()
    again = predictor.joint_samples(TEXTS, [latency, accuracy], 7, known={accuracy: measured}, seed=1)
    assert (drawn == again).all()
    without = [None if math.isnan(value) else value for value in measured]
    of_none = predictor.joint_samples(TEXTS, [latency, accuracy], 7, known={accuracy: without}, seed=1)  # type: ignore[dict-item]
    assert (drawn == of_none).all()


def test_joint_log_probabilities_want_the_order_of_decoding(predictor: Predictor) -> None:
    values = np.ones((5, 2))
    joint = predictor.log_probabilities(TEXTS, OBJECTIVES, values, joint=True)
    assert (joint < 0).all()
    np.testing.assert_array_equal(predictor.log_probabilities(TEXTS, OBJECTIVES, values.tolist(), joint=True), joint)
    with pytest.raises(ValueError, match="objectives: expected the order of decoding"):
        predictor.log_probabilities(TEXTS, OBJECTIVES[::-1], values, joint=True)


@pytest.mark.parametrize("known", [{"accuracy@cifar10": [1.0]}, {"energy_mj@fpga": [1.0] * 5}])
def test_known_values_are_one_a_text_of_what_is_asked(predictor: Predictor, known: dict[str, list[float]]) -> None:
    with pytest.raises(ValueError, match=r"known: expected one value per text \(5\)"):
        predictor.joint_samples(TEXTS, OBJECTIVES, 2, known=known)


def test_values_fit_and_are_finite(predictor: Predictor) -> None:
    for method in ("log_probabilities", "cumulative_probabilities"):
        with pytest.raises(
            ValueError, match=r"values: expected one per text and objective, shape \(5, 2\), got \(4, 2\)"
        ):
            getattr(predictor, method)(TEXTS, OBJECTIVES, np.ones((4, 2)))
        for wrong in ([["a"] * 2] * 5, [[{}, 1]] * 5, [[1], [1, 2]]):
            with pytest.raises(ValueError, match=r"values: expected numbers, got \[\["):
                getattr(predictor, method)(TEXTS, OBJECTIVES, wrong)
    first = OBJECTIVES[0]
    for known, got in (({first: 93.0}, "93.0 for"), ({first: "93"}, "'93' for"), ({"a": None}, "None for")):
        with pytest.raises(ValueError, match=rf"known: expected one value per text \(5\) for accuracy.*, got {got}"):
            predictor.joint_samples(TEXTS, OBJECTIVES, 2, known=known)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"known: expected values by objective, got \[93\.0\]"):
        predictor.joint_samples(TEXTS, OBJECTIVES, 2, known=[93.0])  # type: ignore[arg-type]
    values = np.where(np.arange(10).reshape(5, 2) == 7, np.nan, 1.0)
    with pytest.raises(ValueError, match=rf"values: expected finite numbers, got nan of {OBJECTIVES[1]} in row 3\."):
        predictor.log_probabilities(TEXTS, OBJECTIVES, values)
    for wrong in ([np.inf] * 5, ["fast"] * 5, [[1.0]] * 5):
        with pytest.raises(ValueError, match=rf"known: expected finite numbers for {OBJECTIVES[0]}, or NaN"):
            predictor.joint_samples(TEXTS, OBJECTIVES, 2, known={OBJECTIVES[0]: wrong})  # type: ignore[dict-item]
    for value in (-5.0, 100.5):
        beyond = [*[np.nan] * 4, value]
        with pytest.raises(
            ValueError, match=rf"known: expected percent, 0 to 100, for {OBJECTIVES[0]}, got {value:g}\."
        ):
            predictor.joint_samples(TEXTS, OBJECTIVES, 2, known={OBJECTIVES[0]: beyond})


def test_scores_of_missing_labels_are_missing(predictor: Predictor) -> None:
    labels = np.array([[1.0, np.nan], [np.nan, 5.0]])
    scores = predictor.cumulative_probabilities(TEXTS[:2], OBJECTIVES, labels)
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(labels))
    assert ((scores[np.isfinite(scores)] >= 0) & (scores[np.isfinite(scores)] <= 1)).all()


@pytest.mark.parametrize(
    ("texts", "objectives", "quantiles", "message"),
    [
        (TEXTS, ["latency_ms@raspi"], LEVELS, r"got 'latency_ms@raspi'\. Did you mean latency_ms@raspi4\?"),
        (TEXTS, ["zzz"], LEVELS, r"one of the checkpoint's 2 objectives, got 'zzz'\. `nasrlm info` lists them"),
        (TEXTS, [], LEVELS, r"objectives: expected one or more, got none"),
        (TEXTS, None, (0.9, 0.1), r"expected quantiles ascending in \(0, 1\), got \(0\.9, 0\.1\)"),
        (TEXTS, None, (0.5, 1.0), r"expected quantiles ascending in \(0, 1\)"),
        (TEXTS, None, (), r"expected quantiles ascending in \(0, 1\), got \(\)"),
        (["Pool\n", ""], None, LEVELS, r"text: expected 1 to 512 tokens, got 0 in row 1"),
        (["Pool\n" * 500], None, LEVELS, r"text: expected 1 to 512 tokens, got \d+ in row 0 \('Pool Pool"),
        ("Pool\n", None, LEVELS, r"texts: expected a list of texts, got one text, 'Pool\\n'\. Put it in a list"),
        (["Pool\n", 3], None, LEVELS, r"texts: expected a text in every row, got int in row 1"),
        (None, None, LEVELS, r"texts: expected a list of texts, got NoneType\."),
        (TEXTS, OBJECTIVES[0], LEVELS, rf"objectives: expected a list of names, got '{OBJECTIVES[0]}'\. Put it in a l"),
        (TEXTS, 3, LEVELS, r"objectives: expected a list of names, got 3\."),
        (TEXTS, [3], LEVELS, r"objectives: expected a list of names, got \[3\]\."),
        (TEXTS, None, 0.5, r"quantiles: expected a list of levels in \(0, 1\), got 0\.5\. Put it in a list"),
        (TEXTS, None, None, r"quantiles: expected a list of levels in \(0, 1\), got None\."),
        (TEXTS, None, "0.5", r"quantiles: expected a list of levels in \(0, 1\), got '0\.5'\."),
        (TEXTS, None, ["low"], r"quantiles: expected a list of levels in \(0, 1\), got \['low'\]\."),
        (TEXTS, None, [float("nan")], r"expected quantiles ascending in \(0, 1\), got \(nan,\)"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    predictor: Predictor, texts: Any, objectives: Any, quantiles: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        predictor.predict(texts, objectives, quantiles)


@pytest.mark.parametrize("method", ["sample", "joint_samples"])
def test_there_must_be_samples_and_texts(predictor: Predictor, method: str) -> None:
    with pytest.raises(ValueError, match="samples: expected 1 or more, got 0"):
        getattr(predictor, method)(TEXTS, OBJECTIVES, 0)
    with pytest.raises(ValueError, match="texts: expected a list of texts, got one text"):
        getattr(predictor, method)("Pool\n", OBJECTIVES, 2)
    with pytest.raises(ValueError, match=r"samples: expected a whole number, got 3\.0"):
        getattr(predictor, method)(TEXTS, OBJECTIVES, 3.0)
    with pytest.raises(ValueError, match="seed: expected 0 or more, got -1"):
        getattr(predictor, method)(TEXTS, OBJECTIVES, 2, seed=-1)
    with pytest.raises(ValueError, match="seed: expected a whole number, got None"):
        getattr(predictor, method)(TEXTS, OBJECTIVES, 2, seed=None)
    drawn = getattr(predictor, method)(TEXTS, OBJECTIVES, 2, seed=5)
    np.testing.assert_array_equal(getattr(predictor, method)(TEXTS, OBJECTIVES, np.int64(2), seed=np.int64(5)), drawn)
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(getattr(predictor, method)(TEXTS, OBJECTIVES, 2, seed=rng), drawn)
    assert (getattr(predictor, method)(TEXTS, OBJECTIVES, 2, seed=rng) != drawn).any()


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
@pytest.mark.parametrize("method", ["sample", "joint_samples"])
def test_many_samples_are_drawn_a_slice_at_a_time(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, method: str, engine: Any
) -> None:
    rows: list[int] = []
    in_slices = answerer._in_slices

    def counting(levels: Tensor, spell: Any) -> Tensor:
        return in_slices(levels, lambda some: (rows.append(some.numel()), spell(some))[1])  # type: ignore[func-returns-value]

    monkeypatch.setattr(answerer, "_in_slices", counting)
    drawn = getattr(Predictor(checkpoint, engine), method)(TEXTS, OBJECTIVES, 50, seed=4)
    assert rows == [len(TEXTS) * 2 * 50]
    monkeypatch.setattr(answerer, "ROWS_PER_SLICE", 30)
    sliced = getattr(Predictor(checkpoint, engine), method)(TEXTS, OBJECTIVES, 50, seed=4)
    assert max(rows[1:]) <= len(TEXTS) * 30
    np.testing.assert_allclose(sliced, drawn, rtol=1e-3)


def test_a_name_alone_is_no_list_of_objectives(predictor: Predictor) -> None:
    for ask in (
        lambda names: predictor.sample(TEXTS, names, 2),
        lambda names: predictor.joint_samples(TEXTS, names, 2),
        lambda names: predictor.log_probabilities(TEXTS, names, np.ones((5, 1))),
        lambda names: predictor.cumulative_probabilities(TEXTS, names, np.ones((5, 1))),
    ):
        with pytest.raises(ValueError, match=r"objectives: expected a list of names, got 'accuracy@cifar10'"):
            ask("accuracy@cifar10")
        ask(OBJECTIVES[:1])


def test_padding_fills_shorter_rows() -> None:
    assert torch.equal(pad([[5, 6, 7], [8]]), torch.tensor([[5, 6, 7], [8, 0, 0]]))


def test_texts_may_be_a_series_or_come_one_by_one(checkpoint: Checkpoint) -> None:
    predictor = Predictor(checkpoint)
    texts, names = ["Conv3\n", "Pool\n", "Conv3\nPool\n"], checkpoint.objectives[:1]
    series, values = pd.Series(texts, index=[2, 1, 0]), [[1.0], [2.0], [3.0]]
    for ask in (
        lambda given: predictor.predict(given).values,
        lambda given: predictor.sample(given, names, 3),
        lambda given: predictor.joint_samples(given, names, 3),
        lambda given: predictor.log_probabilities(given, names, values),
        lambda given: predictor.cumulative_probabilities(given, names, values),
        lambda given: predictor.summaries(given),
    ):
        expected = ask(texts)
        np.testing.assert_allclose(ask(series), expected)
        np.testing.assert_allclose(ask(iter(texts)), expected)
    assert [ids.tolist() for ids in predictor.to_ids(series)] == [ids.tolist() for ids in predictor.to_ids(texts)]
    with pytest.raises(ValueError, match="texts: expected a list of texts, got one text, 'abc'"):
        predictor.to_ids("abc")


def test_everything_lies_below_infinity(checkpoint: Checkpoint) -> None:
    names = checkpoint.objectives[:1]
    values = np.array([[-np.inf], [-1e9], [1e9], [np.inf], [np.nan]])
    found = Predictor(checkpoint).cumulative_probabilities(["Conv3\n"] * 5, names, values)[:, 0]
    np.testing.assert_allclose(found, [0, 0, 1, 1, np.nan], atol=1e-6)
    assert found[:4].min() >= 0
    assert found[:4].max() <= 1


@pytest.mark.parametrize("exponents", [(2, 5), (-8, -1)])
def test_of_what_is_not_known_nobody_is_warned(checkpoint: Checkpoint, exponents: tuple[int, int]) -> None:
    model, size = checkpoint.model, checkpoint.tokenizer.vocabulary_size
    other = RegressionLanguageModel(model.config, size, len(OBJECTIVES), NumberCode(2, *exponents)).eval()
    predictor = Predictor(replace(checkpoint, model=other))
    nothing = np.full((len(TEXTS), len(OBJECTIVES)), np.nan)
    with warnings.catch_warnings(action="error"):
        assert np.isfinite(predictor.joint_samples(TEXTS, OBJECTIVES, 3)).all()
        assert np.isnan(predictor.cumulative_probabilities(TEXTS, OBJECTIVES, nothing)).all()


def test_known_values_may_be_anything_that_has_an_order(predictor: Predictor) -> None:
    first, of_texts = OBJECTIVES[0], dict.fromkeys(TEXTS, 90.0)
    drawn = [
        predictor.joint_samples(TEXTS, OBJECTIVES, 2, known={first: values})  # type: ignore[dict-item]
        for values in ([90.0] * len(TEXTS), of_texts.values(), (value for value in of_texts.values()))
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


def test_after_an_error_what_waits_is_not_worked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[int] = []
    cancelled, shutdown = threading.Event(), ThreadPoolExecutor.shutdown

    def work(number: int) -> None:
        if number == 0:
            raise ValueError("zero")
        cancelled.wait()
        worked.append(number)

    def told_shutdown(pool: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False) -> None:
        shutdown(pool, wait=False, cancel_futures=cancel_futures)
        cancelled.set()
        shutdown(pool, wait=wait)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", told_shutdown)
    with pytest.raises(ValueError, match="zero"):
        list(in_threads(work, range(100), 2))
    assert set(worked) <= {1, 2}  # which two workers had begun


def test_batches_are_made_as_they_are_needed() -> None:
    made: list[int] = []

    def batches() -> Iterator[Any]:
        for number in range(100):
            made.append(number)
            yield number

    answers = in_threads(lambda batch: np.array([batch]), batches(), 2)
    assert next(answers).tolist() == [0]
    assert len(made) <= 2 * AHEAD
    assert [int(answer[0]) for answer in answers] == list(range(1, 100))


def test_predictions_become_a_table_with_a_column_a_quantile(predictor: Predictor) -> None:
    prediction = predictor.predict(TEXTS, OBJECTIVES[:1], quantiles=(0.1, 0.5))
    assert predictor.predict([], OBJECTIVES[:1]).to_frame().shape == (0, 3)
    sizes = f"{len(TEXTS)} texts x 1 objectives x 2 quantiles"
    assert repr(prediction) == f"Prediction({sizes}; see values, median, low, high, to_frame())"
    frame = prediction.to_frame()
    assert frame.columns.tolist() == [f"{OBJECTIVES[0]}.q0.1", OBJECTIVES[0]]
    np.testing.assert_array_equal(frame.to_numpy(), prediction.values[:, 0])


def test_canonical_texts_of_measured_networks_are_told() -> None:
    predictor, space = Predictor.from_pretrained(), get_space("nasbench201")
    architecture = space.decode((3, 0, 1, 3, 2, 1))
    measured, canonical = to_measured_text(space, architecture), to_onnx_text(space, architecture)
    names = ["accuracy@cifar10"]
    for predict in (
        lambda texts: predictor.of_space(space).predict(texts, names),
        lambda texts: predictor.predict(texts, names, spaces=["nasbench201", "nasbench201"]),
    ):
        with pytest.warns(UserWarning, match="measured texts of nasbench201, got canonical ones"):
            predict([measured, canonical])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.of_space("nasbench201").predict([measured], names)
        predictor.of_space("nasbench101").predict([canonical], names)  # measured text of these networks is canonical
        predictor.predict([canonical], names)


def test_texts_of_another_kind_than_learned_are_told() -> None:
    released, space = Predictor.from_pretrained().of_space("nasbench201"), get_space("nasbench201")
    network = to_measured_text(space, space.decode((3, 0, 1, 3, 2, 1)))
    with pytest.warns(UserWarning, match=r"expected canonical ONNX text, .* line that looks like a notation or a file"):
        released.predict([network, "net.onnx"], ["accuracy@cifar10"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released.predict([network], ["accuracy@cifar10"])
        Predictor(released.checkpoint).predict(pa.array([network]), ["accuracy@cifar10"])  # type: ignore[arg-type]
