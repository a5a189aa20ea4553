"""Runs and times ONNX texts in ONNX Runtime on this machine's CPU."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from tqdm import tqdm

from converters.arguments import checked_whole
from converters.text import OnnxTextError, to_model

if TYPE_CHECKING:
    import onnxruntime

# onnxruntime is imported inside functions: importing it takes 0.1 s, and conversion does not need it.

MAX_LOADED = 32  # models in memory at a time: a ResNet-50 takes about 200 MB, a NAS-Bench-201 network 3 MB
ROUNDS = 5  # with more than MAX_LOADED models, the repeats of each are spread over this many rounds
PROVIDERS = ["CPUExecutionProvider"]
FED: dict[str, np.dtype[Any]] = {  # element type of an input, by onnxruntime's name for its type
    "tensor(float)": np.dtype("float32"),
    "tensor(double)": np.dtype("float64"),
    **{f"tensor({name})": np.dtype(name) for name in ("float16", "bool", "int8", "int16", "int32", "int64")},
    **{f"tensor({name})": np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}
T = TypeVar("T")
FATAL_ONLY = 4  # onnxruntime's log level; errors that it raises need not be logged too


@dataclass(frozen=True)
class Latency:
    """Time of one inference with batch 1.

    Attributes:
        median_ms: median of all timed runs, in ms.
        iqr_ms: lower and upper quartile of all timed runs, in ms.
        repeats: number of timed runs.
    """

    median_ms: float
    iqr_ms: tuple[float, float]
    repeats: int


class MeasuringInterruptedError(KeyboardInterrupt):
    """Ctrl-C during the measurement of latencies.

    Attributes:
        latencies: N latencies from the runs until then; None for a text that had not been run.
    """

    def __init__(self, latencies: Sequence[Latency | None]) -> None:
        super().__init__()
        self.latencies = latencies

    def __reduce__(self) -> tuple[Any, ...]:  # ``args`` is empty, from which a pool could not unpickle it
        return type(self), (self.latencies,)


class NotAllMeasuredError(OnnxTextError):
    """ONNX Runtime cannot run some of N texts; the others are measured.

    Attributes:
        latencies: N latencies; None for each text that has a reason.
        reasons: why a text cannot be run, by its index; each names the text.
    """

    def __init__(self, latencies: Sequence[Latency | None], reasons: Mapping[int, str]) -> None:
        share = f" {len(reasons):,} of {len(latencies):,} texts cannot be run." if len(latencies) > 1 else ""
        super().__init__(f"{next(iter(reasons.values()))}{share}")
        self.latencies = latencies
        self.reasons = reasons

    def __reduce__(self) -> tuple[Any, ...]:  # ``args`` has the message alone, from which a pool could not unpickle it
        return type(self), (self.latencies, self.reasons)


def measure_latencies(
    onnx_texts: Sequence[str],
    *,
    threads: int = 1,
    repeats: int = 50,
    warmup: int = 5,
    seed: int = 0,
    progress: bool = False,
    names: Sequence[str] | None = None,
) -> list[Latency]:
    """Measure the latency of every text in ONNX Runtime.

    Each repeat runs all models once, in a new random order, so that a machine that slows down in the meantime slows
    down all models alike. The input is random and the same in all repeats; the weights are those of the prelude, see
    ``converters/text.py``.

    NOTE: after other models have run, the CPU caches hold their data, and a small model takes up to half as long again
    (0.50 ms instead of 0.35 ms). Therefore each timed run follows an untimed run of the same model, and a latency does
    not depend on the other models that are measured.

    Args:
        onnx_texts: N texts.
        threads: threads of one inference.
        repeats: timed runs of each model.
        warmup: untimed runs after loading a model.
        seed: seed of the input (normal numbers; zeros for integer inputs) and of the order.
        progress: show a bar on stderr.
        names: N names of the texts for messages; their indices if None.

    Returns:
        N latencies, in the order of the texts.

    Raises:
        ValueError: ``onnx_texts`` is no list of texts; there are not as many names; or ``threads`` or ``repeats`` is
            below 1, ``warmup`` or ``seed`` below 0, or one of them no whole number.
        NotAllMeasuredError: a text is no valid model, or ONNX Runtime cannot run it; it holds the others' latencies.
        MeasuringInterruptedError: after Ctrl-C; it holds the latencies measured until then.

    Cost: ``2 * repeats`` inferences and about 40 ms of loading for each model; if there are more than MAX_LOADED,
    each is loaded ROUNDS times.
    """
    if isinstance(onnx_texts, str) or not isinstance(onnx_texts, Iterable):
        got = "one text" if isinstance(onnx_texts, str) else type(onnx_texts).__name__
        raise ValueError(f"measure_latencies: expected a list of texts, got {got}. Put it in a list.")
    threads = checked_whole("measure_latencies: threads", threads, 1)
    repeats = checked_whole("measure_latencies: repeats", repeats, 1)
    warmup = checked_whole("measure_latencies: warmup", warmup, 0)
    seed = checked_whole("measure_latencies: seed", seed, 0)
    onnx_texts = list(onnx_texts)  # a pandas column would be indexed by its labels
    names = [f"text {index} of {len(onnx_texts)}" for index in range(len(onnx_texts))] if names is None else list(names)
    if len(names) != len(onnx_texts):
        raise ValueError(f"measure_latencies: expected {len(onnx_texts)} names, one per text, got {len(names)}.")
    rng = np.random.default_rng(seed)
    times_ms: list[list[float]] = [[] for _ in onnx_texts]
    reasons = dict[int, str]()
    models = _made(lambda index: _serialised(onnx_texts[index], names[index]), range(len(onnx_texts)), reasons)
    try:
        with tqdm(total=len(onnx_texts) * repeats, desc="measure", unit="run", disable=not progress) as bar:
            for visit_repeats, group in _visits(len(onnx_texts), repeats, rng):
                loaded = _made(lambda x: _LoadedModel(models[x], names[x], threads, warmup, seed), group, reasons)
                for _ in range(visit_repeats):
                    for index in rng.permutation(list(loaded)).tolist():
                        times_ms[index].append(loaded[index].run_ms())
                    bar.update(len(group))
                del loaded  # before the next group comes into memory
    except KeyboardInterrupt as e:
        raise MeasuringInterruptedError([_latency(times) if times else None for times in times_ms]) from e
    if reasons:
        each = [None if index in reasons else _latency(times) for index, times in enumerate(times_ms)]
        raise NotAllMeasuredError(each, reasons)
    return [_latency(times) for times in times_ms]


def machine_description() -> dict[str, str | int | float]:
    """Describe this machine: processor, its cores and threads, memory, system, onnxruntime's version."""
    import onnxruntime
    import psutil  # type: ignore[import-untyped]

    return {
        "processor": _processor_name(),
        "cores": psutil.cpu_count(logical=False) or os.cpu_count() or 1,
        "threads": os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "onnxruntime": str(onnxruntime.__version__),
    }


class _LoadedModel:
    """An ONNX Runtime session with its input, after the warm-up runs."""

    def __init__(self, model: bytes, where: str, threads: int, warmup: int, seed: int) -> None:
        try:
            self._session = session_of(model, threads)
            self._feed = _random_feed(self._session, np.random.default_rng(seed))
            for _ in range(warmup):
                self._session.run(None, self._feed)
        except Exception as e:  # onnxruntime's errors have no common base class
            reason = " ".join(str(e).split())
            raise OnnxTextError(f"ONNX text: expected a model ONNX Runtime can run, got: {reason} in {where}.") from e

    def run_ms(self) -> float:
        self._session.run(None, self._feed)
        start = time.perf_counter_ns()
        self._session.run(None, self._feed)
        return (time.perf_counter_ns() - start) / 1e6


def _serialised(onnx_text: str, where: str) -> bytes:
    try:
        return bytes(to_model(onnx_text).SerializeToString())
    except OnnxTextError as e:
        raise OnnxTextError(f"{e} in {where}.") from e


def _made(make: Callable[[int], T], indices: Iterable[int], reasons: dict[int, str]) -> dict[int, T]:
    """Return what ``make`` returns for each index that has no reason yet; one that fails gets a reason instead."""
    made = dict[int, T]()
    for index in indices:
        if index not in reasons:
            try:
                made[index] = make(index)
            except OnnxTextError as e:
                reasons[index] = str(e)
    return made


def _visits(num_models: int, repeats: int, rng: np.random.Generator) -> list[tuple[int, list[int]]]:
    """Return the groups of models to load together, each with the number of repeats to run before the next group.

    Every round draws new groups, so that the runs of each model are spread over the whole measurement.
    """
    num_groups = ceil(num_models / MAX_LOADED)
    rounds = min(ROUNDS, repeats) if num_groups > 1 else 1
    visits: list[tuple[int, list[int]]] = []
    for part in np.array_split(np.arange(repeats), rounds):
        groups = np.array_split(rng.permutation(num_models), num_groups) if num_models else []
        visits.extend((len(part), group.tolist()) for group in groups)
    return visits


def session_of(model: bytes, threads: int, without: Sequence[str] = ()) -> onnxruntime.InferenceSession:
    """Return a CPU session for a serialised model; errors of ONNX Runtime are not caught.

    Args:
        model: a serialised model.
        threads: threads of one inference.
        without: names of optimisations that ONNX Runtime should leave out.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = FATAL_ONLY
    return onnxruntime.InferenceSession(model, options, providers=PROVIDERS, disabled_optimizers=list(without))


def _random_feed(session: onnxruntime.InferenceSession, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random inputs: normal numbers; zeros for integer inputs, since 0 is a valid index into any table."""
    feed: dict[str, np.ndarray] = {}
    for value in session.get_inputs():
        dtype = FED.get(value.type)
        if dtype is None or not all(isinstance(size, int) for size in value.shape):
            got = f"{value.type} {value.shape} for {value.name}"
            raise ValueError(f"expected numeric inputs of fixed shape, got {got}")
        drawn = rng.standard_normal(value.shape, dtype=np.float32)
        feed[value.name] = drawn.astype(dtype) if np.issubdtype(dtype, np.floating) else np.zeros(value.shape, dtype)
    return feed


def _latency(times_ms: Sequence[float]) -> Latency:
    low, median, high = np.percentile(times_ms, [25, 50, 75]).tolist()
    return Latency(median_ms=median, iqr_ms=(low, high), repeats=len(times_ms))


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")  # on Linux, where platform.processor() often returns only the instruction set
    told = cpuinfo.read_text(encoding="utf-8", errors="replace") if cpuinfo.exists() else ""
    names = re.findall(r"^model name\s*:\s*(.+)$", told, re.MULTILINE)
    return str(names[0]) if names else platform.processor() or platform.machine()
