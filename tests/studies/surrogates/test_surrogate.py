"""A predictor in the terms of a search space."""

import itertools
import pickle
import tracemalloc
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from converters import to_measured_text
from converters.engines import num_workers
from converters.tables.counts import named_counts
from nasrlm.prediction import Prediction
from spaces import get_space
from studies.evaluators import FunctionEvaluator
from studies.surrogates.memory import PredictorMemory, TextMemory
from studies.surrogates.surrogate import Surrogate
from tests.studies.scenes import OBJECTIVES, SPACE, Row, ToyPredictor, columns_of, true_values


class TextPredictor:
    """Predicts from the toy notation; remembers the texts it has read."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def predict(self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]) -> Prediction:
        self.calls.append(list(texts))
        names = tuple(objectives or OBJECTIVES)
        medians = np.array([true_values(SPACE.parse(text)) for text in texts])[:, columns_of(names)]
        values = medians[:, :, None] + np.array(quantiles) - 0.5
        return Prediction(names, tuple(quantiles), values)


def one_text(row: Row) -> str:
    """The same text for all twins."""
    *first, last = SPACE.encode(row)
    return SPACE.format(SPACE.decode((*sorted(first), last)))


def make_surrogate(predictor: TextPredictor) -> Surrogate[Row]:
    return Surrogate(SPACE, predictor, objectives=OBJECTIVES[:2], to_text=one_text)


def test_surrogate_predicts_each_text_once_in_one_call_a_batch() -> None:
    predictor = TextPredictor()
    surrogate = make_surrogate(predictor)
    first = surrogate.evaluate([Row((0, 1, 2, 0)), Row((2, 1, 0, 0)), Row((3, 1, 0, 2))])
    assert predictor.calls == [["0-1-2-0", "0-1-3-2"]]
    again = surrogate.evaluate([Row((3, 1, 0, 2)), Row((4, 4, 0, 1)), Row((1, 2, 0, 0))])
    assert predictor.calls[1:] == [["0-4-4-1"]]
    np.testing.assert_array_equal(first.values[[2, 0, 1]], again.values[[0, 2, 2]])
    np.testing.assert_allclose(again.median[1], true_values(Row((4, 4, 0, 1)))[:2])
    assert again.quantiles == (0.1, 0.5, 0.9)
    assert surrogate.evaluate([]).values.shape == (0, 2, 3)
    assert len(predictor.calls) == 2


def test_a_memory_asks_for_what_it_lacks() -> None:
    predictor = ToyPredictor()
    memory = PredictorMemory(predictor)
    accuracy, latency, energy = OBJECTIVES
    memory.predict(["0-1-2-0", "0-1-2-0"], [accuracy], (0.5,))
    both = memory.predict(["0-1-2-0", "0-1-3-2"], [latency, accuracy], (0.5,))
    assert predictor.calls == [
        (("0-1-2-0",), (accuracy,)),
        (("0-1-2-0",), (latency,)),
        (("0-1-3-2",), (latency, accuracy)),
    ]
    np.testing.assert_array_equal(
        both.values, ToyPredictor().predict(["0-1-2-0", "0-1-3-2"], [latency, accuracy], (0.5,)).values
    )
    memory.predict(["0-1-2-0"], [energy], (0.1, 0.5))  # other levels are asked for again
    memory.predict(["0-1-2-0"], [accuracy], (0.1, 0.5))
    assert len(predictor.calls) == 5


def test_texts_are_not_kept() -> None:
    class Longs:
        def predict(self, texts: Sequence[str], objectives: object, quantiles: Sequence[float]) -> Prediction:
            return Prediction(OBJECTIVES[:1], tuple(quantiles), np.zeros((len(texts), 1, len(quantiles))))

    def long_text(row: Row) -> str:
        return SPACE.format(row) + " " * 100_000

    surrogate = Surrogate(SPACE, Longs(), objectives=OBJECTIVES[:1], to_text=long_text)
    tracemalloc.start()
    try:
        for row in SPACE.enumerate():
            surrogate.evaluate([row])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


@pytest.mark.parametrize("as_they_are", [2**20, 8, 0])  # all, the first, none
def test_a_text_is_written_once(monkeypatch: pytest.MonkeyPatch, as_they_are: int) -> None:
    monkeypatch.setattr("studies.surrogates.memory.UNCOMPRESSED", as_they_are)
    written: list[Row] = []

    def write(row: Row) -> str:
        written.append(row)
        return one_text(row) + "\u03c4"

    memory = TextMemory(write)
    rows = [Row((0, 1, 2, 0)), Row((2, 1, 0, 0)), Row((0, 1, 2, 0))]
    assert [memory(row) for row in rows] == ["0-1-2-0\u03c4"] * 3
    assert written == rows[:2]
    assert TextMemory.of(memory) is memory
    assert TextMemory.of(one_text)(rows[0]) == "0-1-2-0"
    anew = pickle.loads(pickle.dumps(TextMemory(one_text)))
    assert anew(rows[1]) == "0-1-2-0"


def test_many_texts_are_written_by_processes_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.engines.num_workers", lambda asked, total, sent: 2)
    space = get_space("nasbench_macro")
    architectures = list(itertools.islice(space.enumerate(), 130))
    memory = TextMemory(partial(to_measured_text, space))
    first = memory(architectures[7])
    memory.write([*architectures, architectures[0]])
    monkeypatch.setattr(memory, "_to_text", None)  # nothing is left to write
    memory.write(architectures)
    assert memory(architectures[7]) is first
    assert [memory(architecture) for architecture in architectures] == [
        to_measured_text(space, architecture) for architecture in architectures
    ]
    assert memory.architecture_of(first) == architectures[7]


def test_a_function_that_no_process_can_be_sent_writes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("converters.engines._num_cores", lambda: 2)
    monkeypatch.setattr("converters.engines.WORTH_A_PROCESS", 1)
    memory = TextMemory(lambda row: one_text(row))
    memory.write([Row((0, 1, 2, 0)), Row((2, 1, 0, 0))])
    assert memory(Row((2, 1, 0, 0))) == "0-1-2-0"
    assert num_workers(None, 10**6, one_text) > 1
    assert num_workers(None, 10**6, lambda: None) == 1


def test_texts_beyond_those_kept_as_they_are_take_a_quarter_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.surrogates.memory.UNCOMPRESSED", 0)
    space, rng = get_space("darts"), np.random.default_rng(0)
    architectures = [space.sample(rng) for _ in range(20)]
    texts = {architecture: to_measured_text(space, architecture) for architecture in architectures}
    memory = TextMemory(lambda architecture: texts[architecture][:1] + texts[architecture][1:])  # a new string
    tracemalloc.start()
    try:
        assert [memory(architecture) for architecture in texts] == list(texts.values())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < sum(map(len, texts.values())) / 4
    assert [memory(architecture) for architecture in texts] == list(texts.values())


def test_what_can_be_counted_is_counted() -> None:
    class Accuracies:
        def predict(
            self, texts: Sequence[str], objectives: Sequence[str] | None, quantiles: Sequence[float]
        ) -> Prediction:
            assert list(objectives or ()) == ["accuracy@cifar10"]
            return Prediction(("accuracy@cifar10",), tuple(quantiles), np.tile([80.0, 90.0, 95.0], (len(texts), 1, 1)))

    space = get_space("nasbench201")
    drawn = [space.decode(genes) for genes in [(3, 3, 3, 3, 3, 3), (1, 1, 1, 1, 1, 1)]]
    names = ("params@onnx", "accuracy@cifar10", "macs@onnx")
    counted = named_counts(space, drawn, ["params@onnx", "macs@onnx"])
    assert (counted[0] > counted[1]).all()
    surrogate = Surrogate(space, Accuracies(), objectives=names, to_text=lambda x: to_measured_text(space, x))
    answer = surrogate.evaluate(drawn)
    assert answer.objectives == names
    np.testing.assert_array_equal(answer.values[:, [0, 2]], np.repeat(counted[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(answer.values[:, 1], [[80.0, 90.0, 95.0]] * 2)
    alone = Surrogate(space, Accuracies(), objectives=names[:1], to_text=str)
    np.testing.assert_array_equal(alone.evaluate(drawn).median, counted[:, :1])

    function = FunctionEvaluator(space, lambda _: {"accuracy@cifar10": 90.0, "macs@onnx": 5.0}, objectives=names)
    expected = [[params, 90.0, 5.0] for params in counted[:, 0]]
    np.testing.assert_array_equal(function.evaluate(drawn).median, expected)
