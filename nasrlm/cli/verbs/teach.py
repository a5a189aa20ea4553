"""The verb teach: labels for networks that nobody has trained or measured, to learn a space from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from tqdm import tqdm

from converters.bulk import to_onnx_texts
from nasrlm.arrays import FloatArray
from nasrlm.boosted_trees import expected_by_trees
from nasrlm.cli.inputs import SpaceOption, listed
from nasrlm.cli.output import JsonOption, SeedOption, check_table_out, print_json, print_table, warn
from nasrlm.cli.verbs import LIST
from nasrlm.files import write_table
from nasrlm.graph_network import Operators
from nasrlm.graph_network_fit import FittedGraphs
from nasrlm.group_process import GroupProcess, NormalScores
from nasrlm.objective import Objective
from spaces import SearchSpace, get_space
from spaces.drawing import draw, sample_like
from studies.features import feature_groups, features_of
from studies.tables import all_objectives, only_space, parsed_rows, read_rows, row_genotypes, splits_of

LEAST_LABELS = 20  # of an objective


def run(
    table: Annotated[Path, typer.Option("--table", help="Architectures of one space with labels and splits.")],
    out: Annotated[Path, typer.Option("--out", help="The table to write: .parquet, .csv or .jsonl.")],
    objectives: Annotated[
        str | None,
        typer.Option(metavar=LIST, help="Names to teach, separated by commas; all of the table if it is left out."),
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, help="Architectures to draw.")] = 4000,
    labels: Annotated[
        int, typer.Option(min=LEAST_LABELS, help="Labels that a process learns from, at most; time is cubic in it.")
    ] = 2500,
    like_table: Annotated[
        bool, typer.Option("--like-table", help="Draw each choice as often as the table's train rows have it.")
    ] = False,
    space: SpaceOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Draw architectures and write labels that models of graph features expect of them, from the train rows."""
    check_table_out(out, table)
    named = listed(objectives, "--objectives")
    frame, judged, names = _train_rows(table, space, named)
    chosen = get_space(only_space(frame))
    known = parsed_rows(chosen, frame, table)
    labelled = known[frame[list(names)].notna().any(axis=1)]
    sample = sample_like(chosen, row_genotypes(chosen, labelled, table)) if like_table else None
    drawn = [x.architecture for x in tqdm(draw(chosen, count, seed, sample), "draw", count)]
    architectures = [*known, *map(chosen.parse, drawn)]
    _warn_of_judged(chosen, architectures[len(known) :], parsed_rows(chosen, judged, table), table)
    groups = feature_groups(features_of(chosen, architectures, progress=True))
    networks = _Networks(chosen, architectures)
    new = len(frame) + np.arange(len(drawn))
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {"space": chosen.address, "architecture": drawn, "split": "train"}
    used: dict[str, int] = {}
    for objective in tqdm(names, "teach"):
        values = frame[objective].to_numpy(dtype=np.float64, na_value=np.nan)
        rows = rng.permutation(np.flatnonzero(np.isfinite(values)))
        columns[objective], used[objective] = _expected(objective, groups, networks, rows, values[rows], new, labels)
    write_table(pd.DataFrame(columns), out)
    if json:
        print_json({"rows": len(drawn), "labels": used})
    else:
        title = f"{len(drawn):,} different architectures of {count:,} drawn: {out}"
        print_table(["objective", "labels learned from"], list(used.items()), title)


def _warn_of_judged(space: SearchSpace[Any], drawn: Sequence[Any], judged: Iterable[Any], path: Path) -> None:
    keys = {space.architecture_key(architecture) for architecture in judged}
    if keys and (again := sum(space.architecture_key(architecture) in keys for architecture in drawn)):
        warn(
            f"{path}: {again:,} of {len(drawn):,} networks drawn are of its splits valid and test: a model that learns "
            "from them too is too sure of these. Another --seed draws others."
        )


class _Networks:
    """The operators of architectures, each read when a graph network first asks for it: most are of no use to any."""

    def __init__(self, space: SearchSpace[Any], architectures: Sequence[Any]) -> None:
        self._space, self._architectures = space, architectures
        self._read: dict[int, Operators] = {}

    def at(self, rows: NDArray[np.intp]) -> list[Operators]:
        """Those of some rows."""
        new = [row for row in rows.tolist() if row not in self._read]
        texts = to_onnx_texts(self._space, [self._architectures[row] for row in new], progress=bool(new))
        self._read |= zip(new, map(Operators.of_text, texts), strict=True)
        return [self._read[row] for row in rows.tolist()]


def _expected(
    objective: str,
    groups: Sequence[FloatArray],
    networks: _Networks,
    rows: NDArray[np.intp],
    labels: FloatArray,
    new: NDArray[np.intp],
    most: int,
) -> tuple[FloatArray, int]:
    """(new,) labels that a process expects, of ``most`` labels, and how many were learned from.

    Accuracies are halfway to what boosted trees expect of all labels, and from there as far to what a graph network
    expects of ``most`` as labels say that were kept from others like it; costs have no steps that a process smooths.
    """
    process, bounds = GroupProcess(groups).fit(rows[:most], labels[:most]), Objective.parse(objective).bounds
    if not Objective.parse(objective).is_accuracy:
        return process.expect(new).clip(*bounds), min(most, len(rows))
    by_trees = expected_by_trees(np.concatenate(groups, axis=1), rows, NormalScores.of(labels).forward(labels))
    scores = (process.expected_scores(new) + by_trees[new]) / 2
    targets = process.scale.forward(labels[:most])
    if graphs := FittedGraphs.fit(networks.at(rows[:most]), targets, process.left_out(), progress=True):
        scores = graphs.move(scores, networks.at(new))
    return process.scale.backward(scores).clip(*bounds), len(rows)


def _train_rows(
    table: Path, space: str | None, named: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, Sequence[str]]:
    """The rows to learn from, others of their space, and the objectives to teach: those named, or all."""
    every = read_rows(table, space, require=named)
    names = named or all_objectives([every], [table])
    is_train = splits_of(every, table) == "train"
    frame = every[is_train]
    if frame.empty:
        raise ValueError(f"{table}: expected train rows, got none.")
    if not only_space(frame) or "architecture" not in frame or frame["architecture"].isna().any():
        raise ValueError(f"{table}: expected architectures of one space in its train rows. Name it with --space.")
    for name in names:
        if (count := int(frame[name].notna().sum())) < LEAST_LABELS:
            raise ValueError(f"{table}: expected {LEAST_LABELS} or more train rows with {name}, got {count}.")
    others = every[~is_train & (every["space"] == only_space(frame)) & every["architecture"].notna()]
    return frame, others, names
