"""Latencies: the order of measuring, and a few real runs."""

import pickle
import time
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from converters import Latency, OnnxTextError, machine_description, measure_latencies, runtime
from converters.builder import GraphBuilder
from converters.runtime import MeasuringInterruptedError, NotAllMeasuredError
from converters.text import write


def network(size: int) -> str:
    g = GraphBuilder((1, 3, size, size))
    return write(g.build(g.conv(g.conv(g.input, 16, kernel=3), 16, kernel=3)))


class FakeModel:
    """Takes as many milliseconds as its text says; keeps a log of all visits."""

    log: list[tuple[str, int]]
    alive: Counter[str]

    def __init__(self, model: bytes, where: str, threads: int, warmup: int, seed: int) -> None:
        self.latency_ms = int(model)
        self.settings = (threads, warmup, seed)
        FakeModel.log.append(("load", self.latency_ms))

    def __del__(self) -> None:
        FakeModel.log.append(("free", self.latency_ms))

    def run_ms(self) -> float:
        FakeModel.log.append(("run", self.latency_ms))
        return self.latency_ms


@pytest.fixture
def log(monkeypatch) -> list[tuple[str, int]]:
    """What was loaded, run and freed; texts are numbers, and each number is its latency."""
    FakeModel.log = []
    monkeypatch.setattr(runtime, "_LoadedModel", FakeModel)
    monkeypatch.setattr(runtime, "_serialised", lambda text, where: text.encode())
    monkeypatch.setattr(runtime, "MAX_LOADED", 4)
    return FakeModel.log


def runs(log: list[tuple[str, int]]) -> list[int]:
    return [number for event, number in log if event == "run"]


def test_every_repeat_goes_once_through_all_models_in_a_new_order(log):
    measure_latencies(["1", "2", "3", "4"], repeats=20)
    visits = [tuple(runs(log)[start : start + 4]) for start in range(0, 80, 4)]
    assert all(sorted(visit) == [1, 2, 3, 4] for visit in visits)
    assert len(set(visits)) > 5
    assert [event for event, _ in log[:4]] == ["load"] * 4  # and none again
    assert sum(event == "load" for event, _ in log) == 4


@pytest.mark.parametrize("num_models", [0, 1, 4, 5, 9, 13])
@pytest.mark.parametrize("repeats", [1, 3, 12])
def test_every_model_is_timed_as_often_as_asked(log, num_models, repeats):
    latencies = measure_latencies([str(number) for number in range(num_models)], repeats=repeats)
    assert [latency.median_ms for latency in latencies] == list(range(num_models))
    assert {latency.repeats for latency in latencies} <= {repeats}
    assert Counter(runs(log)) == dict.fromkeys(range(num_models), repeats)


def test_no_more_models_are_loaded_than_memory_is_meant_for(log):
    measure_latencies([str(number) for number in range(13)], repeats=12)
    loaded = np.cumsum([{"load": 1, "free": -1, "run": 0}[event] for event, _ in log])
    assert loaded.max() == 4


def test_repeats_of_many_models_are_spread_over_time(log):
    measure_latencies([str(number) for number in range(13)], repeats=12)
    loads = Counter(number for event, number in log if event == "load")
    assert loads == dict.fromkeys(range(13), runtime.ROUNDS)


def test_the_order_follows_the_seed(log):
    orders = []
    for seed in (0, 0, 1):
        log.clear()
        measure_latencies(["1", "2", "3"], repeats=10, seed=seed)
        orders.append(runs(log))
    assert orders[0] == orders[1] != orders[2]


def test_texts_and_names_may_be_columns_of_a_table(log):
    table = pd.DataFrame({"architecture": ["a", "b"], "text": ["1", "2"]}, index=[5, 3])
    assert len(measure_latencies(table["text"], names=table["architecture"], repeats=2)) == 2
    assert len(measure_latencies(iter(table["text"]), repeats=2)) == 2


def test_texts_that_cannot_be_run_do_not_stop_the_others(monkeypatch, log):
    def load(model, where, *settings):
        if int(model) % 4 == 3:
            raise OnnxTextError(f"failed: {where}")
        return FakeModel(model, where, *settings)

    monkeypatch.setattr(runtime, "_LoadedModel", load)
    names = [f"net {number}" for number in range(9)]
    with pytest.raises(NotAllMeasuredError, match=r"^failed: net \d 2 of 9 texts cannot be run\.$") as failed:
        measure_latencies([str(number) for number in range(9)], repeats=7, names=names)
    assert failed.value.reasons == {3: "failed: net 3", 7: "failed: net 7"}
    medians = [latency and latency.median_ms for latency in failed.value.latencies]
    assert medians == [0, 1, 2, None, 4, 5, 6, None, 8]
    assert Counter(runs(log)) == dict.fromkeys((0, 1, 2, 4, 5, 6, 8), 7)
    with pytest.raises(NotAllMeasuredError, match=r"^failed: net 3$"):
        measure_latencies(["3"], names=["net 3"])


def test_a_text_that_cannot_be_loaded_again_is_not_measured(monkeypatch, log):
    loads = Counter()

    def load(model, where, *settings):
        loads[model] += 1
        if model == b"5" and loads[model] == 2:
            raise OnnxTextError(f"failed: {where}")
        return FakeModel(model, where, *settings)

    monkeypatch.setattr(runtime, "_LoadedModel", load)
    with pytest.raises(NotAllMeasuredError) as failed:
        measure_latencies([str(number) for number in range(9)], repeats=7)
    assert list(failed.value.reasons) == [5]
    assert [latency is None for latency in failed.value.latencies] == [number == 5 for number in range(9)]


def test_median_and_quartiles(monkeypatch, log):
    times = iter([5.0, 1.0, 2.0, 4.0, 3.0])
    monkeypatch.setattr(FakeModel, "run_ms", lambda self: next(times))
    (latency,) = measure_latencies(["1"], repeats=5)
    assert latency == runtime.Latency(median_ms=3.0, iqr_ms=(2.0, 4.0), repeats=5)


def test_real_latencies_follow_the_work():
    small, large = measure_latencies([network(8), network(96)], repeats=5, warmup=1)
    assert 0 < small.iqr_ms[0] <= small.median_ms <= small.iqr_ms[1]
    assert large.iqr_ms[0] > 3 * small.iqr_ms[0]  # of 144 times the work; medians tell how busy the machine is, too


def test_loading_and_warm_up_are_not_timed(monkeypatch):
    clock = [0]

    class Slow:
        def __init__(self):
            self.calls = 0

        def run(self, *_):
            self.calls += 1
            if self.calls <= 4:  # three to warm up, one before the first timed run
                clock[0] += 50_000_000

    monkeypatch.setattr(time, "perf_counter_ns", lambda: clock[0])  # a busy machine may take long for nothing
    monkeypatch.setattr(runtime, "session_of", lambda model, threads: Slow())
    monkeypatch.setattr(runtime, "_random_feed", lambda session, rng: {})
    (latency,) = measure_latencies([network(8)], repeats=1, warmup=3)
    assert latency.median_ms == 0


def test_input_is_the_same_for_every_model_of_a_seed():
    session = runtime.session_of(runtime.to_model(network(8)).SerializeToString(), 1)
    first, again, other = (runtime._random_feed(session, np.random.default_rng(seed))["v0"] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first.dtype, first.shape) == (np.float32, (1, 3, 8, 8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "measure_latencies: threads: expected 1 or more, got 0"),
        ({"repeats": 0}, "measure_latencies: repeats: expected 1 or more, got 0"),
        ({"repeats": 2.5}, "measure_latencies: repeats: expected a whole number, got 2.5"),
        ({"repeats": None}, "measure_latencies: repeats: expected a whole number, got None"),
        ({"warmup": -1}, "measure_latencies: warmup: expected 0 or more, got -1"),
        ({"seed": -1}, "measure_latencies: seed: expected 0 or more, got -1"),
        ({"names": []}, "expected 1 names, one per text, got 0"),
    ],
)
def test_senseless_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        measure_latencies([network(8)], **options)


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8", "float16", "double", "bool"])
def test_inputs_of_any_numbers_are_fed(kind):
    text = f"""<
   ir_version: 13,
   opset_import: ["" : 26, "nn" : 1, "block" : 1]
>
network ({kind}[2,3] v0) => (float[2,3] v1) {{
   v1 = Cast <to: int = 1> (v0)
}}
"""
    (latency,) = measure_latencies([text], repeats=1)
    assert latency.median_ms > 0


def test_indices_are_those_that_every_table_has():
    text = """<
   ir_version: 13,
   opset_import: ["" : 26, "nn" : 1, "block" : 1]
>
network (int64[2,3] v0) => (float[2,3] v2) {
   v1 = Constant <value_floats: floats = [0.5]> ()
   v2 = Gather (v1, v0)
}
"""
    (latency,) = measure_latencies([text], repeats=1)
    assert latency.median_ms > 0


def test_a_processor_may_have_a_name_in_any_encoding(tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_bytes(b"processor\t: 0\nmodel name\t: CPU\xae 9\n")
    monkeypatch.setattr(runtime, "Path", lambda _: tmp_path / "cpuinfo")
    assert runtime.machine_description()["processor"] == "CPU\ufffd 9"


def test_a_malformed_text_is_named():
    with pytest.raises(OnnxTextError, match=r"expected onnx\.parser syntax.* in text 1 of 2"):
        measure_latencies([network(8), "nonsense"], repeats=1)


def test_a_model_that_cannot_run_is_named():
    any_size = (
        network(8).replace("float[1,3,8,8] v0", "float[1,3,h,8] v0").replace("float[1,16,8,8]", "float[1,16,h,8]")
    )
    with pytest.raises(OnnxTextError, match=r"expected numeric inputs of fixed shape, got .*'h'.* in text 0 of 1\."):
        measure_latencies([any_size], repeats=1)


def test_the_machine_is_described():
    machine = machine_description()
    assert {*machine} == {"processor", "cores", "threads", "memory_gib", "system", "onnxruntime"}
    assert all(machine.values())
    assert machine["cores"] <= machine["threads"]


def test_a_text_alone_is_no_list_of_texts():
    with pytest.raises(ValueError, match=r"measure_latencies: expected a list of texts, got one text\. Put it in"):
        measure_latencies("<")
    with pytest.raises(ValueError, match="measure_latencies: expected a list of texts, got NoneType"):
        measure_latencies(None)


def test_another_process_may_raise_the_errors():
    unmeasured = NotAllMeasuredError([None, Latency(1.0, (0.9, 1.1), 5)], {0: "failed: net 0"})
    for error in (unmeasured, MeasuringInterruptedError([None])):
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
