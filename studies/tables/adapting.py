"""Adapt a checkpoint to labelled rows of tables: choose the rows to learn from, and the pool of other texts.

N texts, M objectives, n networks to learn from.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from converters.bulk import to_onnx_texts
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.adaptable_labels import MOST_LABELS, SEEM_FRACTIONS, check_sizes, without_strays
from nasrlm.adaptation.pool import Pool, check_adaptable, choose_diverse, make_pool
from nasrlm.adaptation.repeated_labels import mean_labels
from nasrlm.arguments import check_flag, checked_whole
from nasrlm.arrays import FloatArray
from nasrlm.checkpoints.card_steps import adapt_step
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import row_spaces
from nasrlm.metrics import Quality, quality
from nasrlm.model_card import with_step
from nasrlm.predictor import Predictor
from spaces import get_space
from spaces.drawing import POOL, Choice, sample_like
from studies.tables.rows import named, only_space, parsed_rows, row_genotypes, row_names, texts_of_tables, written_texts
from studies.tables.several import measured_rows, of_each, shown_names

CHOICES = get_args(Choice)
IN_MEMORY = "For labels in memory, use nasrlm.adapt."
MOST_JUDGED = 300  # labelled rows not learned from that are used to judge; predicting them takes a second or two


@dataclass(frozen=True)
class AdaptConfig:
    """What a checkpoint learns, and from which rows.

    Attributes:
        tables: files of architectures or texts with labels; rows of the split "test" are not used. Several rows of one
            network count once, with the mean of its labels.
        objectives: names of M objectives.
        samples: number of networks to learn from, which have labels of all objectives; None for all networks with any
            label, each objective from its own labels.
        choose: "random", by the seed, or "active" for the networks whose labels are most informative.
        pool: number of other texts, whose predictions are used in learning. They come from the tables and, if these
            have architectures of one space only, from that space.
        like_table: draw networks of the space with each choice as often as in the tables.
        space: use only rows of this space; it is also the space of tables that name none.
        seed: seed of every random draw.
        leave_out_strays: leave out labels that disagree strongly with all others.

    Raises:
        ValueError: tables or objectives are not a list, are empty or have duplicates; tables are in memory; a number is
            below 2; the seed is negative; or ``choose`` is unknown.
    """

    tables: Sequence[Path | str]
    objectives: Sequence[str]
    samples: int | None = 10
    choose: Choice = "random"
    pool: int = POOL
    like_table: bool = False
    space: str | None = None
    seed: int = 0
    leave_out_strays: bool = False

    def __post_init__(self) -> None:
        for name, given in (("tables", self.tables), ("objectives", self.objectives)):
            object.__setattr__(self, name, _listed(name, given))
        for name, each in (("tables", [path.resolve() for path in self.files]), ("objectives", [*self.objectives])):
            if not each or len(set(each)) < len(each):
                got = ", ".join(map(str, getattr(self, name))) or "none"
                raise ValueError(f"adapt: expected {name}, each once, got {got}.")
        if not isinstance(self.space, str | None):
            raise ValueError(f"adapt: expected the name of a space, got {self.space!r:.60}.")
        for name in ("like_table", "leave_out_strays"):
            check_flag(f"adapt: {name}", getattr(self, name))
        if self.choose not in CHOICES:
            raise ValueError(f"adapt: expected choose to be one of {', '.join(CHOICES)}, got {self.choose!r}.")
        for name, number, least in (("samples", self.samples, 2), ("pool", self.pool, 2), ("seed", self.seed, 0)):
            if number is not None:
                checked_whole(f"adapt: {name}", number, least)

    @property
    def files(self) -> Sequence[Path]:
        """The paths of the tables."""
        return [Path(table) for table in self.tables]


@dataclass(frozen=True)
class Adapted:
    """The result of adapting a checkpoint.

    Attributes:
        checkpoint: predicts the objectives too; its model card describes the adaptation.
        learned: rows that were learned from, one per network, indexed by table number and row number.
        others: up to MOST_JUDGED labelled rows that were not learned from.
        texts_of_others: their texts.
        objectives: M names.
    """

    checkpoint: Checkpoint
    learned: pd.DataFrame
    others: pd.DataFrame
    texts_of_others: Sequence[str] = field(repr=False)
    objectives: Sequence[str]

    def judge(self) -> dict[str, Quality]:
        """Return metrics of each objective on the other rows; {} if there are none."""
        if not self.texts_of_others:
            return {}
        answer = Predictor(self.checkpoint).predict(self.texts_of_others, self.objectives)
        return quality(answer, self.others[list(self.objectives)].to_numpy(dtype=np.float64))


def adapt_to_tables(checkpoint: Checkpoint, config: AdaptConfig, progress: bool = False) -> Adapted:
    """Learn objectives from labelled rows of tables, see ``nasrlm.adapt``; other objectives are not affected.

    Args:
        checkpoint: checkpoint to start from; it is not changed.
        config: what to learn.
        progress: show bars on stderr.

    Warns:
        UserWarning: several rows are of one network, networks are of several spaces, an objective is known already, or
            as for ``nasrlm.adapt``.

    Raises:
        ValueError: ``config`` is not an AdaptConfig, a table cannot be read or has too few labels, or as for
            ``nasrlm.adapt``.
    """
    if not isinstance(config, AdaptConfig):
        raise ValueError(f"adapt_to_tables: expected an AdaptConfig, got {type(config).__name__}. {IN_MEMORY}")
    rng, names = np.random.default_rng(config.seed), config.objectives
    check_adaptable(checkpoint, names)
    measured = measured_rows(config.files, config.space, names)
    frame, wanted = _drawn_rows(measured, config, rng)
    if config.like_table and not _is_of_a_space(frame):
        raise ValueError(
            f"{named(config.files)}: like_table: expected architectures of one space, got texts or several spaces."
        )
    _warn_of_known(checkpoint, names)
    texts = texts_of_tables(*of_each(frame, config.files), progress=progress)
    texts += _more_texts(frame, config, wanted + config.pool - len(frame), rng, progress)
    of_spaces = sorted(set(row_spaces(frame)))
    pool = make_pool(checkpoint, texts, progress, space=of_spaces[0] if len(of_spaces) == 1 else "")
    candidates = np.flatnonzero(_labelled(frame, config))
    if config.choose == "active" and wanted < len(candidates):  # ordering all of thousands would take minutes
        used = choose_diverse(pool, candidates, wanted)
    else:
        used = rng.choice(candidates, wanted, replace=False)
    learned, learned_texts = frame.iloc[used], {texts[row] for row in used}
    spaces = _spaces_of(learned)
    pool, labels = _with_labels(pool, used, learned, measured, names)
    name_of = dict(zip(texts, shown_names(frame, config.files), strict=False))
    found, left_out = _learn(checkpoint, config, pool, labels, [name_of.get(text, "") for text in pool.texts], progress)
    counts = [
        sum(is_known and texts[row] not in strays for row, is_known in zip(used, learned[name].notna(), strict=True))
        for name, strays in zip(names, left_out, strict=True)
    ]
    found = with_step(found, adapt_step(names, counts, config.files, spaces))
    others = np.array([row for row in rng.permutation(candidates) if texts[row] not in learned_texts], dtype=np.intp)
    others = others[:MOST_JUDGED]
    return Adapted(found, learned, frame.iloc[others], [texts[row] for row in others], names)


def _warn_of_known(checkpoint: Checkpoint, names: Sequence[str]) -> None:
    if again := [name for name in names if name in checkpoint.objectives]:
        advice = " Give the earlier tables too." if checkpoint.added.intersection(again) else ""
        warnings.warn(
            f"adapt: {', '.join(again)}: already known; the new checkpoint predicts from these labels alone, in every "
            f"space.{advice}",
            stacklevel=3,
        )


def _spaces_of(learned: pd.DataFrame) -> list[str]:
    """Return the spaces of the networks to learn from; warn if there are several."""
    if len(spaces := sorted(set(row_spaces(learned)))) > 1:
        warnings.warn(
            f"adapt: {', '.join(spaces)}: learned together; each space may be predicted better if adapted to "
            "separately, from its own labels alone.",
            stacklevel=3,
        )
    return spaces


def _learn(
    checkpoint: Checkpoint, config: AdaptConfig, pool: Pool, labels: FloatArray, shown: Sequence[str], progress: bool
) -> tuple[Checkpoint, list[set[str]]]:
    """Adapt to one objective after another, with (N, M) labels of the pool's texts and names to show for these.

    Returns:
        The adapted checkpoint, and for each objective the texts whose labels were left out as strays.
    """
    left_out: list[set[str]] = []
    names = tqdm(config.objectives, "learn", unit="objective", disable=not progress)
    for name, given in zip(names, labels.T, strict=True):
        kept = without_strays(pool, name, given, names=shown) if config.leave_out_strays else given
        left_out.append(set(itertools.compress(pool.texts, np.isfinite(given) & np.isnan(kept))))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", SEEM_FRACTIONS)  # given already when the tables were read
            checkpoint = adapt(checkpoint, pool, name, kept, progress, names=shown)
    return checkpoint, left_out


def _listed(name: str, given: Any) -> tuple[Any, ...]:
    """Return paths of tables or names of objectives as a tuple.

    Raises:
        ValueError: a single path or name was given, or something else, such as a table in memory.
    """
    if isinstance(given, str | os.PathLike):
        raise ValueError(f"adapt: expected {name} as a list, got {given!r}.")
    is_list = isinstance(given, Iterable) and not isinstance(given, pd.DataFrame | Mapping)
    items = tuple(given) if is_list else (given,)
    for item in items:
        if not isinstance(item, str | os.PathLike):
            of_what = "files' paths" if name == "tables" else "names"
            raise ValueError(f"adapt: expected {name} as a list of {of_what}, got {type(item).__name__}. {IN_MEMORY}")
    return items


def _drawn_rows(measured: pd.DataFrame, config: AdaptConfig, rng: np.random.Generator) -> tuple[pd.DataFrame, int]:
    """Return rows for the pool, one per network, and the number of labelled ones to learn from.

    Raises:
        ValueError: the tables have too few labels, or so many are too large that some of those are learned for sure.
    """
    frame = _one_a_network(measured, config.objectives)
    labelled = _labelled(frame, config)
    wanted = _count(frame, int(labelled.sum()), config)
    for name in config.objectives:  # before thousands of texts are converted and predicted
        check_sizes(name, frame[name][labelled].to_numpy(dtype=np.float64, na_value=np.nan), wanted)
    return frame.iloc[_pool_rows(labelled, wanted, wanted + config.pool, rng)], wanted


def _one_a_network(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the first row of each network, with the means of the network's labels."""
    rows, labels = mean_labels(_networks(frame), frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan))
    if len(rows) < len(frame):
        warnings.warn(
            f"adapt: {len(frame) - len(rows):,} rows repeat networks of other rows: the mean of each network's labels "
            "is used.",
            stacklevel=4,
        )
    return frame.iloc[rows].assign(**dict(zip(names, labels.T, strict=True)))


def _networks(frame: pd.DataFrame) -> list[str]:
    """Return an identifier of the network of each row: its text, or else its space and notation."""
    texts = written_texts(frame)
    rows = zip(frame.index, row_spaces(frame), row_names(frame), strict=True)
    return [texts.get(row) or f"{space} {name}" for row, space, name in rows]


def _with_labels(
    known: Pool, used: NDArray[np.intp], learned: pd.DataFrame, measured: pd.DataFrame, names: Sequence[str]
) -> tuple[Pool, FloatArray]:
    """Return the pool with its labels, (texts of the pool, M), NaN if there is none.

    If networks to learn from were measured several times, all of these rows are appended to the pool, each with its own
    labels.

    Args:
        known: pool of N texts.
        used: (n,) indices of the networks to learn from.
        learned: n rows of these networks, with the means of their labels.
        measured: all labelled rows.
        names: names of the M objectives.
    """
    repeats, places = _repeats(measured, learned, names)
    if len(places):
        first = len(known.texts)
        known, learned = known.at(np.concatenate([np.arange(first), used[places]])), repeats
        used = np.arange(first, len(known.texts))
    labels = np.full((len(known.texts), len(names)), np.nan)
    labels[used] = learned[list(names)].to_numpy(dtype=np.float64, na_value=np.nan)
    return known, labels


def _repeats(
    measured: pd.DataFrame, learned: pd.DataFrame, names: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return all labelled rows of the networks in ``learned``, and the (rows,) positions of their networks in it.

    Both are empty if each of these networks has only one row.
    """
    place_of = {network: place for place, network in enumerate(_networks(learned))}
    labelled = measured[measured[list(names)].notna().any(axis=1)]
    places = np.array([place_of.get(network, -1) for network in _networks(labelled)], dtype=np.intp)
    if np.count_nonzero(places >= 0) == len(learned):
        places[:] = -1
    return labelled[places >= 0], places[places >= 0]


def _labelled(frame: pd.DataFrame, config: AdaptConfig) -> NDArray[np.bool_]:
    """Return (rows,) flags of rows to learn from: with all labels, or with any if ``config.samples`` is None."""
    known = frame[list(config.objectives)].notna()
    return (known.any(axis=1) if config.samples is None else known.all(axis=1)).to_numpy()


def _count(frame: pd.DataFrame, labelled: int, config: AdaptConfig) -> int:
    """Return the number of networks to learn from, given the number of labelled ones.

    Raises:
        ValueError: there are too few labels, or too many.
    """
    wanted = labelled if config.samples is None else config.samples
    if wanted > MOST_LABELS:
        raise ValueError(
            f"samples: expected at most {MOST_LABELS:,} labels, got {wanted:,}. Give a smaller number, or use `nasrlm "
            "train`."
        )
    counts = frame[list(config.objectives)].count()
    if config.samples is None and labelled and counts.min() < 2:
        raise ValueError(
            f"{named(config.files)}: expected 2 or more rows outside the test split with labels of {counts.idxmin()}, "
            f"got {counts.min()}."
        )
    if not 2 <= wanted <= labelled:
        several = len(config.objectives) > 1
        advice = (
            " Learn objectives with labels in different rows one after another."
            if several
            else " Use them all (`--samples all`, samples=None)."
        )
        raise ValueError(
            f"{named(config.files)}: expected at least {max(wanted, 2)} rows outside the test split with labels of "
            f"{' and '.join(config.objectives)}, got {labelled}.{advice * (several or labelled > 1)}"
        )
    return wanted


def _pool_rows(labelled: NDArray[np.bool_], wanted: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return random rows for the pool, in the table's order, with enough labelled ones among them."""
    order = rng.permutation(len(labelled))
    first = order[labelled[order]][:wanted]
    others = order[~np.isin(order, first)]
    return np.sort(np.concatenate([first, others[: size - len(first)]]))


def _is_of_a_space(frame: pd.DataFrame) -> bool:
    """Return whether all rows are architectures of one space, so that more can be drawn from it."""
    return "text" not in frame and bool(only_space(frame))


def _more_texts(
    frame: pd.DataFrame, config: AdaptConfig, count: int, rng: np.random.Generator, progress: bool
) -> list[str]:
    """Return texts of architectures drawn from the tables' space; none if rows are of several spaces or have texts."""
    if not _is_of_a_space(frame):
        return []
    space, sample = get_space(only_space(frame)), None
    if config.like_table:
        parts = zip(*of_each(frame, config.files), strict=True)
        given = [x for rows, table in parts for x in row_genotypes(space, parsed_rows(space, rows, table), table)]
        sample = sample_like(space, given)
    drawn = [(sample or space.sample)(rng) for _ in range(max(count, 0))]
    return to_onnx_texts(space, drawn, measured=True, progress=progress)
