"""Teach: label networks that nobody has trained or measured, by models of graph features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from converters.bulk import to_onnx_texts
from nasrlm.adaptation.boosted_trees import expected_by_trees
from nasrlm.adaptation.graph_network_fit import FittedGraphs
from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.label_scales import NormalScores
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from nasrlm.model.graph_network import Operators
from nasrlm.objective import Objective
from spaces import SearchSpace, get_space
from spaces.drawing import draw, sample_like
from studies.surrogates.features import feature_groups, features_of
from studies.tables.rows import all_objectives, only_space, parsed_rows, read_rows, row_genotypes, splits_of
from studies.tables.teach_config import LEAST_LABELS, TeachConfig


def teach(config: TeachConfig, progress: bool = False) -> tuple[pd.DataFrame, dict[str, int]]:
    """Draw architectures and label them by models of graph features that have learned from the train rows.

    Args:
        config: what to draw and to learn from.
        progress: show bars on stderr.

    Returns:
        A table of the distinct architectures drawn, all with the split "train"; and for each objective the number of
        labels learned from.

    Warns:
        UserWarning: some of them are networks of the table's other splits.

    Raises:
        ValueError: the table cannot be read, is of several spaces or has too few labels.
    """
    table = config.table
    frame, judged, names = _train_rows(table, config.space, config.objectives)
    space = get_space(only_space(frame))
    known = parsed_rows(space, frame, table)
    labelled = known[frame[list(names)].notna().any(axis=1)]
    sample = sample_like(space, row_genotypes(space, labelled, table)) if config.like_table else None
    rows = tqdm(draw(space, config.count, config.seed, sample), "draw", config.count, disable=not progress)
    drawn = [row.architecture for row in rows]
    architectures = [*known, *map(space.parse, drawn)]
    _warn_of_judged(space, architectures[len(known) :], parsed_rows(space, judged, table), table)
    groups = feature_groups(features_of(space, architectures, progress=progress))
    networks = _Networks(space, architectures, progress)
    new = len(frame) + np.arange(len(drawn))
    rng = np.random.default_rng(config.seed)
    columns: dict[str, Any] = {"space": space.address, "architecture": drawn, "split": "train"}
    learned: dict[str, int] = {}
    for name in tqdm(names, "teach", disable=not progress):
        values = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
        order = rng.permutation(np.flatnonzero(np.isfinite(values)))
        columns[name], learned[name] = _expected(name, groups, networks, order, values[order], new, config.labels)
    return pd.DataFrame(columns), learned


def _warn_of_judged(space: SearchSpace[Any], drawn: Sequence[Any], judged: Iterable[Any], path: Path) -> None:
    keys = {space.architecture_key(architecture) for architecture in judged}
    if keys and (again := sum(space.architecture_key(architecture) in keys for architecture in drawn)):
        warn_caller(
            f"{path}: {again:,} of {len(drawn):,} networks drawn are in its splits valid and test: a model that also "
            "learns from them is overconfident on these splits. Use another seed to draw others."
        )


class _Networks:
    """The operators of architectures, read when a graph network first needs them, because most are never needed."""

    def __init__(self, space: SearchSpace[Any], architectures: Sequence[Any], progress: bool) -> None:
        self._space, self._architectures, self.progress = space, architectures, progress
        self._read: dict[int, Operators] = {}

    def at(self, rows: NDArray[np.intp]) -> list[Operators]:
        """Return the operators of some rows."""
        new = [row for row in rows.tolist() if row not in self._read]
        texts = to_onnx_texts(
            self._space, [self._architectures[row] for row in new], progress=self.progress and bool(new)
        )
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
    """Return (new,) expected labels and the number of labels learned from.

    Costs are those of a Gaussian process that learns from ``most`` labels. For accuracies, whose steps a process
    smooths, the result is the mean of the process and of boosted trees that learn from all labels, moved towards a
    graph network that learns from ``most``; how far is decided by labels held out from other such networks.
    """
    process, bounds = GroupProcess(groups).fit(rows[:most], labels[:most]), Objective.parse(objective).bounds
    if not Objective.parse(objective).is_accuracy:
        return process.expect(new).clip(*bounds), min(most, len(rows))
    by_trees = expected_by_trees(np.concatenate(groups, axis=1), rows, NormalScores.of(labels).forward(labels))
    scores = (process.expected_scores(new) + by_trees[new]) / 2
    targets = process.scale.forward(labels[:most])
    if graphs := FittedGraphs.fit(networks.at(rows[:most]), targets, process.left_out(), networks.progress):
        scores = graphs.move(scores, networks.at(new))
    return process.scale.backward(scores).clip(*bounds), len(rows)


def _train_rows(
    table: Path, space: str | None, named: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, Sequence[str]]:
    """Return the rows to learn from, the other rows of their space, and the objectives: those named, or all."""
    every = read_rows(table, space, require=named)
    names = named or all_objectives([every], [table])
    is_train = splits_of(every, table) == "train"
    frame = every[is_train]
    if frame.empty:
        raise ValueError(f"{table}: expected train rows, got none.")
    if not only_space(frame) or "architecture" not in frame or frame["architecture"].isna().any():
        raise ValueError(f"{table}: expected architectures of one space in its train rows. Set the space.")
    for name in names:
        if (count := int(frame[name].notna().sum())) < LEAST_LABELS:
            raise ValueError(f"{table}: expected {LEAST_LABELS} or more train rows with {name}, got {count}.")
    others = every[~is_train & (every["space"] == only_space(frame)) & every["architecture"].notna()]
    return frame, others, names
