"""The demo: a Pareto search with the released checkpoint, its front measured on this machine.

python -m studies.demo --out demo
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from converters import to_measured_text
from converters.runtime import Latency, machine_description, measure_latencies
from nasrlm.files import write_table
from nasrlm.objective import Goal, Objective
from nasrlm.prediction import spell_interval
from nasrlm.predictor import Predictor
from spaces import get_space
from studies.config import SearchConfig
from studies.folder import (
    DIGESTS,
    FRONT_FILE,
    HISTORY_FILE,
    MAY_CHANGE,
    STUDY_FILE,
    StudyError,
    alone_in,
    holds_study,
    read_study,
)
from studies.report import StudyResult
from studies.search import search

SPACE = "nasbench201"
GOALS = ("max:accuracy@cifar10", "min:latency_ms@raspi4", "min:latency_ms@edgegpu")
TRIALS = 2000
MEASURED_FILE = "measured.csv"
_FREE = dict.fromkeys([*DIGESTS, *MAY_CHANGE])  # settings in which two demos may differ


def run_demo(out: Path, trials: int = TRIALS, repeats: int = 20, progress: bool = True) -> StudyResult:
    """Search, measure the members of the front in ONNX Runtime, print the front, and write all to ``out``.

    Args:
        out: folder of the demo; an earlier demo there is replaced.
        trials: number of evaluations by the surrogate.
        repeats: number of timed runs of each front member.
        progress: show bars on stderr.

    Raises:
        StudyError: the folder holds another study.
    """
    space = get_space(SPACE)
    config = SearchConfig(SPACE, tuple(map(Goal.parse, GOALS)), trials)
    with alone_in(out):
        _remove_earlier(out, config)
    result = search(config, space, Predictor.from_pretrained(), out, progress=progress)
    architectures = [row["architecture"] for row in result.front]
    texts = [to_measured_text(space, space.parse(architecture)) for architecture in architectures]
    latencies = measure_latencies(texts, repeats=repeats, progress=progress)
    measured = pd.DataFrame({"architecture": architectures, "latency_ms@here": [x.median_ms for x in latencies]})
    write_table(measured, out / MEASURED_FILE)
    _print_front(config, result, latencies)
    print(f"{result.evaluations:,} evaluations in {result.seconds:.0f} s, hypervolume {result.hypervolume:.4g}")
    written = ", ".join(("front.png", "front.html", FRONT_FILE, MEASURED_FILE, HISTORY_FILE, STUDY_FILE))
    print(f"figures and tables: {out}/{written}")
    return result


def _remove_earlier(out: Path, config: SearchConfig) -> None:
    if not holds_study(out):
        return
    recorded = read_study(out)["config"]
    if {**recorded, **_FREE} != {**config.to_dict(), **_FREE}:
        raise StudyError(f"{out}: expected no study, or that of an earlier demo, got another. Choose another --out.")
    for name in (STUDY_FILE, HISTORY_FILE, FRONT_FILE, MEASURED_FILE):
        (out / name).unlink(missing_ok=True)


def _print_front(config: SearchConfig, result: StudyResult, latencies: list[Latency]) -> None:
    machine = machine_description()
    table = Table(title=f"Pareto front of {SPACE}: median (80 % interval) from ONNX text; measured on {machine}")
    table.add_column("architecture", overflow="fold")
    for goal in config.goals:
        table.add_column(Objective.parse(goal.objective).label, justify="right")
    table.add_column("measured here [ms]", justify="right")
    for row, latency in zip(result.front, latencies, strict=True):
        cells = [spell_interval(row[goal.objective]) for goal in config.goals]
        table.add_row(row["architecture"], *cells, f"{latency.median_ms:.2f}")
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def main() -> None:
    """Run the command line of the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    out = parser.parse_args().out
    try:
        run_demo(out)
    except (StudyError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
