"""Run every method on every task of a protocol, once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from tqdm import tqdm

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.extras import check_extra
from nasrlm.metrics import rho_of, tau_of
from nasrlm.model.devices import torch_device
from studies.benchmark.language_models import LanguageModels
from studies.benchmark.protocol import Protocol, Target, get_protocol
from studies.benchmark.registry import METHODS
from studies.benchmark.results import Record, Results
from studies.benchmark.scoring import FROM_TEXTS, scores_of
from studies.benchmark.task import Tables, draw_task


@dataclass(frozen=True)
class BenchmarkConfig:
    """The configuration of a benchmark run.

    Attributes:
        protocol: name of the protocol.
        methods: names in METHODS; if empty, all that the protocol and the checkpoint allow.
        objectives: columns to rank by, for a protocol of one space; the protocol's own if empty.
        sizes: numbers of labels; the protocol's own if empty.
        seeds: number of draws; their seeds are 0 to seeds - 1.
        steps: steps of every training of a language model.
        checkpoint: folder of the checkpoint for the methods that start from one.
        device: where language models run; other methods run on the CPU.
    """

    protocol: str
    methods: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    seeds: int = 5
    steps: int = 600
    checkpoint: Path | None = None
    device: str = "cpu"

    @property
    def chosen_methods(self) -> tuple[str, ...]:
        """The methods to run, as given or all possible ones in the order of METHODS.

        Raises:
            ValueError: there is no such method, or it needs a checkpoint or sources.
        """
        protocol = get_protocol(self.protocol)
        possible = [
            name
            for name, method in METHODS.items()
            if (protocol.sources or not method.needs_sources) and (self.checkpoint or method.checkpoint != "must")
        ]
        if refused := [name for name in self.methods if name not in possible]:
            known = METHODS.get(refused[0])
            hint = " It needs --checkpoint." if known is not None and known.checkpoint == "must" else ""
            raise ValueError(
                f"--methods: expected some of {', '.join(possible)} for {self.protocol}, got {refused[0]!r}.{hint}"
            )
        return self.methods or tuple(possible)


def run_benchmark(config: BenchmarkConfig, tables: Tables, path: Path, progress: bool = False) -> list[Record]:
    """Return all records of a protocol; those in the file are not computed again.

    Methods run one after another, by default the cheapest first, so that a stopped run has complete results of some.
    Each method runs on every target, for each on ascending sizes, and for each size on all seeds.

    Args:
        config: the configuration.
        tables: tables of the spaces.
        path: file of JSON lines, to which records are appended.
        progress: show a bar on stderr.

    Raises:
        ValueError: a name or number is invalid; a table, checkpoint or device cannot be used; there are too few labels;
            the checkpoint knows an objective that the protocol holds out; or a method gives a score that is not finite.
        ImportError: a method's package is not installed; the message names the extra.
    """
    protocol = get_protocol(config.protocol, config.objectives)
    names, sizes = config.chosen_methods, config.sizes or protocol.sizes
    if min(sizes) < 2 or config.seeds < 1:
        raise ValueError(f"benchmark: expected --sizes above 1 and --seeds above 0, got {sizes} and {config.seeds}.")
    torch_device(config.device)
    _check_packages(names)
    _check_held_out(protocol, config.checkpoint)
    for target in protocol.targets:
        draw_task(protocol, tables, target, max(sizes), seed=0)  # there are enough labels, or no method begins
    results, models = Results(path), LanguageModels(config.steps, config.checkpoint, config.device)
    begun_with = "" if config.checkpoint is None else Checkpoint.from_pretrained(config.checkpoint).sha256
    todo = list(product(names, protocol.targets, sorted(sizes), range(config.seeds)))
    records: list[Record] = []
    with tqdm(todo, desc="benchmark", unit="answer", disable=not progress) as bar:
        for name, target, size, seed in bar:
            bar.set_postfix_str(f"{name}, {target.space} {target.objective}, {size} labels, seed {seed}")
            settings = _settings(config, tables, protocol, target, name, begun_with)
            identity = (config.protocol, target.space, target.objective, name, size, seed, settings)
            if identity not in results:
                started = time.perf_counter()
                task = draw_task(protocol, tables, target, size, seed)
                scores = scores_of(name, models, task)
                seconds = time.perf_counter() - started
                tau, rho = tau_of(scores, task.truth), rho_of(scores, task.truth)
                results.add(Record(*identity, _finite(tau), _finite(rho), len(task.test), round(seconds, 2)))
            records.append(results[identity])
    return records


def _settings(
    config: BenchmarkConfig, tables: Tables, protocol: Protocol, target: Target, name: str, begun_with: str
) -> str:
    """Return a hash of the tables and, for a language model, of its steps and checkpoint."""
    spaces = {target.space, *(source.space for source in protocol.sources)}
    parts = [tables[space].digest for space in sorted(spaces)]
    if name in FROM_TEXTS:
        parts.append(str(config.steps))
        if METHODS[name].checkpoint != "no":
            parts.append(begun_with)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]


def _check_packages(methods: Sequence[str]) -> None:
    for name in methods:
        if package := METHODS[name].package:
            check_extra(f"--methods: {name}", "gnn", package)


def _check_held_out(protocol: Protocol, checkpoint: Path | None) -> None:
    if protocol.held_out and (seen := known_targets(protocol, checkpoint)):
        raise ValueError(
            f"{checkpoint}: expected a checkpoint that does not know {', '.join(seen)}, got one that does. "
            "Train one without these labels."
        )


def _finite(value: float) -> float:
    """Return 0 for NaN, the correlation of constant scores."""
    return value if np.isfinite(value) else 0.0


def known_targets(protocol: Protocol, checkpoint: Path | None) -> Sequence[str]:
    """Return the objectives of a protocol that a checkpoint knows by name, so that it may have seen their labels."""
    if checkpoint is None:
        return []
    known = set(Checkpoint.from_pretrained(checkpoint).objectives)
    return sorted({target.objective for target in protocol.targets if target.objective in known})
