"""How many real evaluations does a search need, with the regression language model (RLM) and without?

Evaluations are looked up in published tables. Every method has the same budget. Its quality is the hypervolume of the
architectures that it evaluated, by their labels in the table, divided by the hypervolume of the whole table. The
reference point has the worst value of each objective in the table.

    python -m benchmarks.search --tables ../shared/data --out runs/search --seeds 10
    python -m benchmarks.search --spaces nasbench201 --objectives max:accuracy@cifar10,min:energy_mj@edgegpu

Every finished search is a line of results.jsonl in --out. A benchmark that was stopped is resumed by the same command,
which needs the same budget, goals and tables. Searches are run again if the checkpoint of their method has changed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console
from tqdm import tqdm

from benchmarks.circumstances import circumstances
from benchmarks.command_line import check_counts, one_line_errors
from benchmarks.search_curves import Curves, curve_of, draw, table_of
from benchmarks.search_methods import ALONE, Method, SearchTask, gated, guided
from converters import to_measured_text
from nasrlm.files import file_digest
from nasrlm.json_lines import append_line, finished_lines
from nasrlm.objective import to_losses
from nasrlm.predictor import Predictor
from spaces import Spellings, get_space
from studies.surrogates.memory import TextMemory
from studies.surrogates.process_adapter import ProcessAdapter, check_readable, every_network
from studies.truth import true_labels

GOALS = {
    "nasbench201": ("max:accuracy@cifar10", "min:latency_ms@raspi4", "min:energy_mj@edgegpu"),
    "nasbench101": ("max:valid_accuracy@cifar10", "min:params"),
    "nasbench_macro": ("max:accuracy@cifar10", "min:macs"),
    "mnasnet": ("max:proxy_accuracy@imagenet", "min:latency_ms@zcu102", "max:throughput_ips@a100"),
}
RESULTS_FILE = "results.jsonl"
# At the end of a method's name: a study of one's own with the gate, instead of a guided search.
GATES = {" gate": False, " gate, graphs": True}  # whether unknown objectives are learned from graphs of all networks


@dataclass(frozen=True)
class Config:
    """The configuration of the benchmark.

    Attributes:
        tables: folder of SPACE.parquet.
        out: folder of the results.
        spaces: names in GOALS.
        methods: names in ALONE or of checkpoints; all if empty. A checkpoint's name and one of ``GATES`` is a study of
            one's own.
        checkpoints: folders of checkpoints by the name of their method; "" is the released one.
        seeds: number of seeds of each method, from 0.
        budget: number of real evaluations of a search.
        counts: numbers of evaluations at which ratios are printed.
        goals: goals of a single space, instead of those in GOALS.
    """

    tables: Path
    out: Path
    spaces: tuple[str, ...] = tuple(GOALS)
    methods: tuple[str, ...] = ()
    checkpoints: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 10
    budget: int = 500
    counts: tuple[int, ...] = (25, 50, 100, 200, 500)
    goals: tuple[str, ...] = ()

    def goals_of(self, space: str) -> tuple[str, ...]:
        """Return the goals of the search in a space."""
        return self.goals or GOALS[space]


def run(config: Config, progress: bool = False) -> Curves:
    """Run the searches missing in ``results.jsonl``; return the curves of all.

    Raises:
        ValueError: a table is missing, or ``results.jsonl`` was begun with another one, other goals or another budget.
    """
    config.out.mkdir(parents=True, exist_ok=True)
    path = config.out / RESULTS_FILE
    predictors = {
        name: Predictor.from_pretrained(folder or None)
        for name, folder in config.checkpoints.items()
        if not config.methods or not set(_names(name)).isdisjoint(config.methods)
    }
    digests = {method: predictor.checkpoint.sha256 for name, predictor in predictors.items() for method in _names(name)}
    settings = {name: _settings(config, name) for name in config.spaces}
    rows = _read(path, settings, digests)
    done = {(row["space"], row["method"], row["seed"]): row["curve"] for row in rows}
    for space_name in config.spaces:
        space = get_space(space_name)
        task = SearchTask.of(_table(config, space_name), space, config.goals_of(space_name), config.budget)
        methods = _methods(config, task, predictors)
        whole = to_losses(task.config.goals, true_labels(task.config, task.table))
        todo = [(m, s) for s in range(config.seeds) for m in methods if (space_name, m, s) not in done]
        for method, seed in tqdm(todo, space_name, disable=not progress):
            started = time.monotonic()
            curve = curve_of(methods[method](task, seed), whole)
            row = {"space": space_name, "method": method, "seed": seed, **settings[space_name], "curve": curve}
            if method in digests:
                row["checkpoint"] = digests[method]
            row["seconds"] = round(time.monotonic() - started, 1)
            append_line(path, row)
            done[space_name, method, seed] = curve
    curves: dict[tuple[str, str], list[list[float]]] = {}
    for space_name in config.spaces:
        for (of, method, seed), curve in done.items():
            if of == space_name and seed < config.seeds and (not config.methods or method in config.methods):
                curves.setdefault((of, method), []).append(curve)
    draw(curves, config.out / "search.png")
    return curves


def _settings(config: Config, name: str) -> dict[str, Any]:
    """Return the settings on which the curves of a space depend: budget, goals, and a hash of the table's file."""
    table = _table(config, name)
    if not table.is_file():
        raise ValueError(f"{table}: expected a table, got no such file.")
    return {"budget": config.budget, "goals": list(config.goals_of(name)), "table": file_digest(table)}


def _table(config: Config, name: str) -> Path:
    return config.tables / f"{name}.parquet"


def _read(
    path: Path, settings: Mapping[str, Mapping[str, Any]], digests: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of these spaces, except for methods whose checkpoint is another one now."""
    for line in finished_lines(path):
        row = json.loads(line)
        if row["space"] not in settings:
            continue
        for name, value in settings[row["space"]].items():
            if row.get(name) != value:
                raise ValueError(f"{path}: expected {name} {value}, got {row.get(name)}. Choose another --out.")
        if row["method"] not in digests or row.get("checkpoint") == digests[row["method"]]:
            yield row


def _methods(config: Config, task: SearchTask[Any], predictors: Mapping[str, Predictor]) -> dict[str, Method]:
    """Return the chosen methods by name; features of networks are computed once per space for all checkpoints."""
    methods, wanted = dict(ALONE), config.methods or (*ALONE, *config.checkpoints)
    names = [*ALONE, *(method for name in config.checkpoints for method in _names(name))]
    if unknown := [method for method in wanted if method not in names]:
        raise ValueError(f"search: expected methods of {', '.join(names)}, got {', '.join(unknown)}.")
    if predictors:
        space = task.table.space
        of_table = cache(partial(every_network, space, task.config.searched(space), task.table.known))
        of_space = cache(partial(every_network, space, Spellings(space), None))
        to_text = TextMemory(partial(to_measured_text, space))
        for name, of_all_spaces in predictors.items():
            predictor = of_all_spaces.of_space(space.address)
            adapter = partial(ProcessAdapter, space, predictor, task.config.objectives, to_text=to_text)
            methods[name] = guided(predictor, to_text, adapter(networks=of_table))
            for gate, graphs in GATES.items():
                if graphs and name + gate in wanted:
                    check_readable(space)
                methods[name + gate] = gated(predictor, to_text, adapter(networks=of_space if graphs else None))
    return {method: methods[method] for method in wanted}


def _names(checkpoint: str) -> list[str]:
    """Return the names of a checkpoint's methods: guiding a search, and in the gates of studies."""
    return [checkpoint, *(checkpoint + gate for gate in GATES)]


def _checkpoints(pairs: Sequence[str]) -> dict[str, str]:
    """Return the folders of checkpoints by name.

    Raises:
        ValueError: a pair is not NAME=FOLDER, or has the name of another method.
    """
    folders: dict[str, str] = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        taken = {*ALONE, *(method for other in folders for method in _names(other))}
        if not (name and equals) or not taken.isdisjoint(_names(name)):
            raise ValueError(f"--rlm: expected NAME=FOLDER, the name of no other method, got {pair}.")
        folders[name] = folder
    return folders


@one_line_errors()
def main(words: Sequence[str] | None = None) -> None:
    """Print a table and one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/search"))
    parser.add_argument("--spaces", nargs="+", default=list(GOALS), choices=list(GOALS))
    objectives = "objectives of a single space, instead of its default ones"
    parser.add_argument("--objectives", default="", metavar="max:NAME,min:NAME", help=objectives)
    parser.add_argument(
        "--methods",
        nargs="+",
        default=[],
        help=f"methods to run: some of {', '.join(ALONE)} and the names in --rlm; with {' or '.join(map(repr, GATES))} "
        "after its name, a checkpoint is in the gate of an Optuna study instead of guiding a search",
    )
    parser.add_argument(
        "--rlm",
        nargs="+",
        default=["rlm="],
        metavar="NAME=FOLDER",
        help="methods guided by a checkpoint; NAME= uses the released checkpoint",
    )
    parser.add_argument("--seeds", type=int, default=Config.seeds)
    parser.add_argument("--budget", type=int, default=Config.budget)
    parser.add_argument("--counts", type=int, nargs="+", default=Config.counts)
    given = parser.parse_args(words)
    if given.objectives and len(given.spaces) != 1:
        raise ValueError(f"--objectives: expected a single space in --spaces, got {', '.join(given.spaces)}. Give one.")
    config = Config(
        tables=given.tables,
        out=given.out,
        spaces=tuple(given.spaces),
        goals=tuple(given.objectives.split(",")) if given.objectives else (),
        methods=tuple(given.methods),
        checkpoints=_checkpoints(given.rlm),
        seeds=given.seeds,
        budget=given.budget,
        counts=tuple(given.counts),
    )
    check_counts(config, "seeds", "budget", "counts")
    curves = run(config, progress=True)
    Console(width=200).print(table_of(curves, [count for count in config.counts if count <= config.budget]))
    print(json.dumps(circumstances(config)))


if __name__ == "__main__":
    main()
