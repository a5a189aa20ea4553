"""Compare predictions with the labels of tables, and print metrics for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nasrlm.cli.guesses import warn_of_guesses
from nasrlm.cli.output import print_table, say
from nasrlm.evaluation import Evaluation, evaluate
from nasrlm.examples import Examples
from nasrlm.metrics import COLUMNS
from nasrlm.predictor import Predictor
from studies.tables.files import label_columns
from studies.tables.rows import named, read_rows, require_labels, splits_of, texts_of_tables


def evaluate_on_tables(
    predictor: Predictor, tables: Sequence[Path], wanted: Sequence[str], split: str | None, space: str | None
) -> tuple[Evaluation, list[str]]:
    """Compare predictions with the labels of tables, with bars on stderr.

    Args:
        predictor: makes the predictions.
        tables: with labels.
        wanted: objectives; if empty, all labels that the predictor knows.
        split: use only rows of this split; None for all rows.
        space: use only rows of this space; None for all rows.

    Returns:
        The evaluation, and the names of labels that were skipped: the predictor does not know them, or there are fewer
        than two.

    Raises:
        ValueError: a table cannot be read, there are no labels that the predictor knows, or too few of a wanted one.
    """
    named_so = wanted or predictor.objectives  # a column without @ may be an objective too
    frames = [_rows_of_split(read_rows(table, space, labels=named_so), split, table) for table in tables]
    labels = wanted or tuple(dict.fromkeys(name for frame in frames for name in label_columns(frame, named_so)))
    known = [name for name in labels if wanted or name in predictor.objectives]
    if not known:
        raise ValueError(
            f"{named(tables)}: expected labels of objectives that the checkpoint knows, got "
            f"{', '.join(labels) or 'no labels'}. Choose another checkpoint with --checkpoint."
        )
    require_labels(frames, tables, known)
    predictor.predict([], known)  # unknown objectives fail before any work
    examples = Examples.of_tables(frames, tables, texts_of_tables(frames, tables, progress=True), known)
    result = evaluate(predictor, examples, progress=True)
    answered = {name for of_space in result.quality.values() for name in of_space}
    if unlabelled := [name for name in wanted if name not in answered]:
        raise ValueError(f"{named(tables)}: expected two labels or more of {', '.join(unlabelled)}, got fewer.")
    for name, of_space in result.quality.items():
        warn_of_guesses(predictor, [name], list(of_space))
    return result, [name for name in labels if name not in answered]


def print_evaluation(evaluation: Evaluation) -> None:
    """Print a table with a row for each space and objective, and how fast all was predicted."""
    rows = [
        [space, objective, *metrics.values()]
        for space, measured in evaluation.quality.items()
        for objective, metrics in measured.items()
    ]
    print_table(COLUMNS, rows)
    say(f"{evaluation.predictions_per_second:,.0f} predictions/s, each with all objectives and their intervals")


def _rows_of_split(frame: pd.DataFrame, split: str | None, path: Path) -> pd.DataFrame:
    splits = splits_of(frame, path)
    if split is None:
        return frame
    if "split" not in frame:
        raise ValueError(f"{path}: expected a column split, got none. Leave --split out.")
    rows = frame[splits == split]
    if rows.empty:
        raise ValueError(f"{path}: expected rows of split {split}, got {', '.join(splits.unique())}.")
    return rows
