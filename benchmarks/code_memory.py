"""Can nasrlm rank programs by the memory that they take? Peak memory of small Python programs, from their source.

    python -m benchmarks.code_memory --out runs/code_memory

Random programs are drawn. Each is run in a process of its own, whose peak resident memory is read from the system
(``getrusage``). Then ``nasrlm train`` learns from 70 % of the programs, with the tokenizer of source code; another 15 %
are valid rows. The printed numbers are Kendall's τ on the remaining 15 %, for the model and for two simple predictors:
the length of the source, and the largest number in it.

A measured program is a line of ``programs.jsonl`` in ``--out`` and is not run again. A benchmark that was killed is
resumed by the same command.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.programs import draw_program
from nasrlm.files import to_json
from nasrlm.json_lines import append_line, finished_lines
from nasrlm.metrics import tau_of

OBJECTIVE = "memory_bytes@python"
SPLITS = (("train", 0.70), ("valid", 0.85), ("test", 1.0))
ROOT = Path(__file__).resolve().parent.parent
MEASURER = ROOT / "benchmarks" / "peak_memory.py"
SIZES = {"width": 64, "num_heads": 4, "num_encoder_layers": 3, "num_decoder_layers": 1, "hidden": 192}


@dataclass(frozen=True)
class Config:
    """The configuration of the benchmark.

    Attributes:
        out: folder of programs and model.
        programs: number of different programs.
        epochs: epochs of training.
        seed: seed of programs, splits and training.
    """

    out: Path = Path("runs/code_memory")
    programs: int = 800
    epochs: int = 80
    seed: int = 0


def measure(config: Config, *, progress: bool) -> Path:
    """Run the programs that have not been run yet; return the path of the table of all.

    Raises:
        ValueError: the folder has programs of another seed.
        RuntimeError: a program failed.
    """
    config.out.mkdir(parents=True, exist_ok=True)
    path = config.out / "programs.jsonl"
    done = [json.loads(line) for line in finished_lines(path)]
    programs = list(_draw(config))
    if [row["text"] for row in done] != programs[: len(done)]:
        raise ValueError(
            f"{path}: expected the first programs of seed {config.seed}, got others. Choose another --out."
        )
    splits = _splits(config)
    with tempfile.TemporaryDirectory() as folder:
        todo = programs[len(done) :]
        bar = tqdm(todo, "measure", len(programs), initial=len(done), unit="program", disable=not progress)
        for index, (program, peak) in enumerate(_peaks(bar, Path(folder)), start=len(done)):
            append_line(path, {"text": program, "split": splits[index], OBJECTIVE: peak})
    return path


def learn(config: Config, table: Path) -> dict[str, float]:
    """Train the model; return the number of test programs, and the Kendall τ of the model and of two plain guesses."""
    settings = {
        "table": str(table),
        "out": str(config.out / "run"),
        "tokenizer": "code",
        "vocabulary_size": 512,
        "model": SIZES,
        "num_digits": 2,
        "augment": "benchmarks.programs:rename",
        "epochs": config.epochs,
        "batch_size": 32,
        "learning_rate": 0.01,
        "embedding_learning_rate": 2e-3,
        "evaluate_every_epochs": max(1, config.epochs // 20),
        "patience": 20,
        "seed": config.seed,
    }
    path = config.out / "train.yaml"
    path.write_text(yaml.safe_dump(settings))
    command = [str(Path(sys.executable).with_name("nasrlm")), "train", "--config", str(path), "--json"]
    augmented = os.environ | {"PYTHONPATH": str(ROOT)}  # so that the module of the augmentation is found
    done = subprocess.run(command, env=augmented, stdout=subprocess.PIPE, text=True, check=True)
    (quality,) = json.loads(done.stdout)["test"].values()
    tau = quality[OBJECTIVE]["kendall_tau"]  # null if all predictions are equal
    test = pd.read_json(table, lines=True).query("split == 'test'")
    numbers = [[int(number) for number in re.findall(r"\d+", text)] for text in test["text"]]
    return {
        "programs in test": len(test),
        "model": math.nan if tau is None else tau,
        "largest number": _tau([max(found, default=0) for found in numbers], test),
        "length of source": _tau([len(text) for text in test["text"]], test),
    }


def _tau(guess: Sequence[float], test: pd.DataFrame) -> float:
    return tau_of(np.array(guess, dtype=np.float64), test[OBJECTIVE].to_numpy(dtype=np.float64))


def _draw(config: Config) -> Iterator[str]:
    rng = np.random.default_rng(config.seed)
    drawn: dict[str, None] = {}
    while len(drawn) < config.programs:
        drawn.setdefault(draw_program(rng))
    yield from drawn


def _splits(config: Config) -> list[str]:
    shares = np.random.default_rng((config.seed, 1)).random(config.programs)
    return [next(name for name, below in SPLITS if share < below) for share in shares]


def _peaks(programs: tqdm[str], folder: Path) -> Iterator[tuple[str, int]]:
    """Run programs one after another and yield each with its peak memory in bytes."""
    command = [sys.executable, "-I", "-S", str(MEASURER)]
    path = folder / "program.py"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as measurer:
        assert measurer.stdin is not None
        assert measurer.stdout is not None
        for program in programs:
            path.write_text(program)
            measurer.stdin.write(f"{path}\n")
            measurer.stdin.flush()
            answer = json.loads(measurer.stdout.readline())
            if answer["status"]:
                raise RuntimeError(f"program: expected it to end well, got status {answer['status']}:\n{program}")
            yield program, answer["bytes"]
        measurer.stdin.close()


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Measure, learn, and print τ and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Config.out)
    parser.add_argument("--programs", type=int, default=Config.programs)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    parser.add_argument("--seed", type=int, default=Config.seed)
    config = Config(**vars(parser.parse_args(words)))
    check_counts(config, "programs", "epochs")
    if min(map(_splits(config).count, ("train", "test"))) < 2:
        raise ValueError(f"--programs: expected two or more to learn from and to test, got {config.programs} in all.")
    table = measure(config, progress=sys.stderr.isatty())
    taus = learn(config, table)
    for name, value in taus.items():
        print(f"{name}: {value:.3f}" if isinstance(value, float) else f"{name}: {value}")
    print(to_json({"kendall_tau": taus, **circumstances(config)}))


if __name__ == "__main__":
    main()
