"""How well does training use a device? Text tokens per second, memory and model FLOPs utilisation, in bf16.

    python -m benchmarks.scale --device cuda                       # 60 M and 300 M parameters
    python -m benchmarks.scale --sizes 1M --batch 4 --length 64    # takes seconds on a CPU
    python -m benchmarks.scale --sizes 1M --batch 4 --tokens-per-state 1 2 4    # long texts

A training step is complete, as in ``nasrlm train``: forward, backward, clipping of gradients, Muon and AdamW. The
tokens are random.

Floating-point operations are those of the model's matrix products and of attention, forward and backward, as torch
counts them. Those of the optimisers are not counted, although they take time. Utilisation is the number of operations
per second as a share of the device's peak for dense bf16 products. The peak is ``--peak-tflops`` if given, else what
the maker states. For a CPU, or a device whose peak is not listed here, it is the fastest product measured now, for
which the machine should be idle.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.peak_memory import UNIT
from benchmarks.training_step import SETTINGS, add_gradients, make_step
from nasrlm.model.config import ModelConfig
from nasrlm.model.devices import torch_device
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.training.batches import Batch, Batches
from nasrlm.training.compiled import compiled
from nasrlm.training.loss import TrainingLoss

VOCABULARY = 1024
UNTIMED_STEPS = 2
SQUARE = 2048  # rows and columns of the matrices that are multiplied to measure a device's peak
SIZES = {
    "1M": ModelConfig(width=128, num_heads=2, num_encoder_layers=3, num_decoder_layers=1, hidden=352, dropout=0.0),
    "60M": ModelConfig(width=640, num_heads=10, num_encoder_layers=9, num_decoder_layers=2, hidden=1728, dropout=0.0),
    "300M": ModelConfig(
        width=1024, num_heads=16, num_encoder_layers=20, num_decoder_layers=3, hidden=2688, dropout=0.0
    ),
}
# Dense bf16 TFLOP/s from NVIDIA's data sheets, by a part of the device's name in torch.
STATED_TFLOPS = {"H200": 989.0, "H100 80GB HBM3": 989.0, "H100 PCIe": 756.0, "A100": 312.0, "L40S": 362.0, "L4": 121.0}
COUNTS = ("batch", "length", "objectives", "steps")  # attributes of Config that are numbers


@dataclass(frozen=True)
class Config:
    """The configuration of the benchmark.

    Attributes:
        device: where to train.
        sizes: names in SIZES.
        batch: texts per step.
        length: tokens per text.
        objectives: numbers per text.
        steps: number of timed steps.
        tokens_per_state: values to measure for each size.
        compile: use ``torch.compile``.
        peak_tflops: peak of the device; stated or measured if None.
    """

    device: str = "cpu"
    sizes: tuple[str, ...] = ("60M", "300M")
    batch: int = 64
    length: int = 1024
    objectives: int = 6
    steps: int = 10
    tokens_per_state: tuple[int, ...] = (1,)
    compile: bool = False
    peak_tflops: float | None = None


@dataclass(frozen=True)
class Utilisation:
    """Speed and memory of training steps of one model; rates are those of the median step."""

    size: str
    tokens_per_state: int
    parameters: int
    tokens_per_second: float
    seconds_per_step: float
    slowest_step: float
    memory_gib: float
    tflops_per_second: float
    utilisation: float


def measure(config: Config, *, progress: bool) -> list[Utilisation]:
    """Measure one model after another.

    Raises:
        ValueError: torch cannot use the device here.
    """
    device = torch_device(config.device)
    peak = config.peak_tflops or stated_tflops(device) or measured_tflops(device)
    models = tqdm([*product(config.sizes, config.tokens_per_state)], "models", disable=not progress)
    return [_measure(config, size, tokens, device, peak) for size, tokens in models]


def stated_tflops(device: torch.device) -> float | None:
    """Return the peak TFLOP/s that the maker of a device states; None if not in the list."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((tflops for part, tflops in STATED_TFLOPS.items() if part in name), None)


def measured_tflops(device: torch.device) -> float:
    """Return the TFLOP/s of the fastest of some products of square matrices, in bf16, on a CPU also in fp32."""
    fastest = float("inf")
    for dtype in (torch.bfloat16, torch.float32) if device.type == "cpu" else (torch.bfloat16,):
        x = torch.ones(SQUARE, SQUARE, dtype=dtype, device=device)
        fastest = min(fastest, *(_seconds(lambda x=x: x @ x, device) for _ in range(4)))  # type: ignore[misc]
    return 2 * SQUARE**3 / fastest / 1e12


def _measure(config: Config, size: str, tokens_per_state: int, device: torch.device, peak_tflops: float) -> Utilisation:
    torch.manual_seed(0)
    code = NumberCode()
    sizes = replace(SIZES[size], tokens_per_state=tokens_per_state)
    model = RegressionLanguageModel(sizes, VOCABULARY, config.objectives, code).to(device)
    batch = _batch(config, code).to(config.device)
    loss_of = TrainingLoss(model, SETTINGS.smoothing_digits, 0.0)
    operations = config.batch * _count(lambda: add_gradients(loss_of, batch.part(0, config.batch)))
    step = partial(make_step(model, compiled(loss_of, config.device) if config.compile else loss_of), batch)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    for _ in range(UNTIMED_STEPS):
        step()
    seconds = [_seconds(step, device) for _ in range(config.steps)]
    tflops = operations / 1e12 / median(seconds)
    return Utilisation(
        size=size,
        tokens_per_state=tokens_per_state,
        parameters=model.num_parameters,
        tokens_per_second=config.batch * config.length / median(seconds),
        seconds_per_step=median(seconds),
        slowest_step=max(seconds),
        memory_gib=_peak_bytes(device) / 2**30,
        tflops_per_second=tflops,
        utilisation=tflops / peak_tflops,
    )


def _count(work: Callable[[], None]) -> int:
    """Count floating-point operations, with attention as two products, as fused ones are not counted on all devices."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


def _batch(config: Config, code: NumberCode) -> Batch:
    rng = np.random.default_rng(0)
    return Batches(
        rng.integers(1, VOCABULARY, (config.batch, config.length)).tolist(),
        rng.uniform(1, 100, (config.batch, config.objectives)),
        np.ones(config.objectives),
        code,
        batch_size=config.batch,
        objectives_per_row=config.objectives,
        alone_probability=0.0,
        seed=0,
    )[0]


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    _wait(device)
    started = time.perf_counter()
    work()
    _wait(device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _peak_bytes(device: torch.device) -> int:
    """Return the peak bytes of the device's memory; on a CPU those of this process, with all models so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=Config.device)
    parser.add_argument("--sizes", nargs="+", choices=tuple(SIZES), default=Config.sizes)
    for name in COUNTS:
        parser.add_argument(f"--{name}", type=int, default=getattr(Config, name))
    parser.add_argument("--tokens-per-state", nargs="+", type=int, default=Config.tokens_per_state)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--peak-tflops", type=float, default=None)
    given = vars(parser.parse_args(words))
    config = Config(**given | {name: tuple(given[name]) for name in ("sizes", "tokens_per_state")})
    check_counts(config, *COUNTS)
    if config.peak_tflops is not None and not 0 < config.peak_tflops < math.inf:
        raise ValueError(f"--peak-tflops: expected more than 0, got {config.peak_tflops:g}.")
    measured = measure(config, progress=sys.stderr.isatty())
    described = "", "tokens per state", "parameters"
    table = Table(*described, "tokens/s", "s/step", "slowest", "GiB", "TFLOP/s", "utilisation")
    for row in measured:
        numbers = f"{row.seconds_per_step:.4g}", f"{row.slowest_step:.4g}", f"{row.memory_gib:.3g}"
        speeds = f"{row.tflops_per_second:.4g}", f"{row.utilisation:.1%}"
        described = row.size, str(row.tokens_per_state), f"{row.parameters:,}"
        table.add_row(*described, f"{row.tokens_per_second:,.0f}", *numbers, *speeds)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    print(json.dumps({"measured": [asdict(row) for row in measured], **circumstances(config, config.device)}))


if __name__ == "__main__":
    main()
