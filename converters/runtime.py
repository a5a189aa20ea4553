"""Run and time ONNX texts in ONNX Runtime, on this machine's processor."""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm import tqdm

from converters.text import OnnxTextError, to_model

if TYPE_CHECKING:
    import onnxruntime

# onnxruntime itself is imported where it is used: it costs 0.1 s, and who only converts needs none.

MAX_LOADED = 32  # models in memory at a time: a ResNet-50 takes about 200 MB, a NAS-Bench-201 network 3 MB
ROUNDS = 5  # with more models than that, each one's repeats are spread over so many separate visits
PROVIDERS = ["CPUExecutionProvider"]
FED: dict[str, np.dtype[Any]] = {  # by the names of onnxruntime's types
    "tensor(float)": np.dtype("float32"),
    "tensor(double)": np.dtype("float64"),
    **{f"tensor({name})": np.dtype(name) for name in ("float16", "bool", "int8", "int16", "int32", "int64")},
    **{f"tensor({name})": np.dtype(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}
FATAL_ONLY = 4  # onnxruntime's log level; what is raised it need not print


@dataclass(frozen=True)
class Latency:
    """Time of one inference, batch 1.

    Attributes:
        median_ms: of all repeats.
        iqr_ms: their lower and upper quartile.
        repeats: number of timed runs.
    """

    median_ms: float
    iqr_ms: tuple[float, float]
    repeats: int


class MeasuringInterruptedError(KeyboardInterrupt):
    """Ctrl-C while latencies were measured.

    Attributes:
        latencies: N of them, by the runs until then; None of a text without any.
    """

    def __init__(self, latencies: Sequence[Latency | None]) -> None:
        super().__init__()
        self.latencies = latencies


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
    """Latency of every text in ONNX Runtime.

    Each repeat goes once through all models, in a new random order, so that a machine that slows down meanwhile
    slows down all of them alike. Input is random and the same for every repeat; weights are the prelude's.

    NOTE: a model that has just waited for others finds the caches full of theirs, and a small one then takes up to
    half as long again (0.50 ms for 0.35 ms). So each timed run comes right after an untimed one, and a latency does
    not depend on which models are measured along with it.

    Args:
        onnx_texts: N texts.
        threads: of one inference.
        repeats: timed runs of every model.
        warmup: untimed runs after loading a model.
        seed: of the input, normal numbers or, where they are whole, zeros; and of the order.
        progress: show a bar on stderr.
        names: N of them, of what the texts are of, for messages; their numbers if None.

    Returns:
        N latencies, in the order of the texts.

    Raises:
        ValueError: one text, ``threads`` or ``repeats`` below 1, ``warmup`` below 0.
        OnnxTextError: a text is no valid model or ONNX Runtime cannot run it; nothing has been timed by then,
            unless there are more than MAX_LOADED texts.
        MeasuringInterruptedError: by Ctrl-C; it has what was timed until then.

    Cost: twice ``repeats`` inferences and about 40 ms of loading a model; more than MAX_LOADED are loaded ROUNDS
    times.
    """
    if isinstance(onnx_texts, str):
        raise ValueError("measure_latencies: expected a list of texts, got one text. Put it in a list.")
    for name, value, least in (("threads", threads, 1), ("repeats", repeats, 1), ("warmup", warmup, 0)):
        if value < least:
            raise ValueError(f"measure_latencies: expected {name} of at least {least}, got {value}.")
    names = names or [f"text {index} of {len(onnx_texts)}" for index in range(len(onnx_texts))]
    models = [_serialised(text, name) for text, name in zip(onnx_texts, names, strict=True)]
    rng = np.random.default_rng(seed)
    times_ms: list[list[float]] = [[] for _ in models]
    try:
        with tqdm(total=len(models) * repeats, desc="measure", unit="run", disable=not progress) as bar:
            for visit_repeats, group in _visits(len(models), repeats, rng):
                loaded = {index: _LoadedModel(models[index], names[index], threads, warmup, seed) for index in group}
                for _ in range(visit_repeats):
                    for index in rng.permutation(group).tolist():
                        times_ms[index].append(loaded[index].run_ms())
                    bar.update(len(group))
                del loaded  # before the next group comes into memory
    except KeyboardInterrupt as e:
        raise MeasuringInterruptedError([_latency(times) if times else None for times in times_ms]) from e
    return [_latency(times) for times in times_ms]


def machine_description() -> dict[str, str | int | float]:
    """What a latency was measured on: processor, its cores and threads, memory, system, onnxruntime's version."""
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
    """A session with its input, warmed up."""

    def __init__(self, model: bytes, where: str, threads: int, warmup: int, seed: int) -> None:
        try:
            self._session = session_of(model, threads)
            self._feed = _random_feed(self._session, np.random.default_rng(seed))
            for _ in range(warmup):
                self._session.run(None, self._feed)
        except Exception as e:  # onnxruntime's errors have no base of their own
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


def _visits(num_models: int, repeats: int, rng: np.random.Generator) -> list[tuple[int, list[int]]]:
    """Groups of models to load together, and how many repeats to run of each before the next group.

    Every round draws new groups, so that models of different groups are still compared under all conditions.
    """
    num_groups = ceil(num_models / MAX_LOADED)
    rounds = min(ROUNDS, repeats) if num_groups > 1 else 1
    visits: list[tuple[int, list[int]]] = []
    for part in np.array_split(np.arange(repeats), rounds):
        groups = np.array_split(rng.permutation(num_models), num_groups) if num_models else []
        visits.extend((len(part), group.tolist()) for group in groups)
    return visits


def session_of(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    """A serialised model, ready to run on the processor; ONNX Runtime raises what it raises."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = FATAL_ONLY
    return onnxruntime.InferenceSession(model, options, providers=PROVIDERS)


def _random_feed(session: onnxruntime.InferenceSession, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Normal numbers; zeros where these are whole, such as indices, of which every table has one."""
    feed: dict[str, np.ndarray] = {}
    for value in session.get_inputs():
        dtype = FED.get(value.type)
        if dtype is None or not all(isinstance(size, int) for size in value.shape):
            got = f"{value.type} {value.shape} for {value.name}"
            raise ValueError(f"expected inputs of numbers, of fixed shape, got {got}")
        drawn = rng.standard_normal(value.shape, dtype=np.float32)
        feed[value.name] = drawn.astype(dtype) if np.issubdtype(dtype, np.floating) else np.zeros(value.shape, dtype)
    return feed


def _latency(times_ms: Sequence[float]) -> Latency:
    low, median, high = np.percentile(times_ms, [25, 50, 75]).tolist()
    return Latency(median_ms=median, iqr_ms=(low, high), repeats=len(times_ms))


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")  # Linux; there platform.processor() often knows only the instruction set
    names = re.findall(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else []
    return str(names[0]) if names else platform.processor() or platform.machine()
