"""Adapt a checkpoint to labelled rows of tables: choose the rows to learn from, and the pools of other texts.

Each space is learned from its own labels, with a pool and a readout of its own.

N texts, M objectives, n networks to learn from.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from converters.bulk import to_onnx_texts
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.adaptable_labels import MOST_LABELS, SEEM_FRACTIONS, check_sizes, without_strays
from nasrlm.adaptation.pool import Pool, check_adaptable, choose_diverse, make_pool
from nasrlm.adaptation.repeated_labels import mean_labels, places_of
from nasrlm.arrays import FloatArray
from nasrlm.callers import warn_caller
from nasrlm.checkpoints.card_steps import adapt_step
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples, row_spaces
from nasrlm.metrics import Quality, quality
from nasrlm.model_card import with_step
from nasrlm.named_spaces import known_as
from nasrlm.predictor import Predictor
from spaces import get_space
from spaces.drawing import sample_like
from studies.tables.adapt_config import IN_MEMORY, AdaptConfig
from studies.tables.rows import (
    named,
    only_space,
    parsed_rows,
    row_genotypes,
    row_names,
    rows_to_convert,
    texts_of_tables,
    written_texts,
)
from studies.tables.several import measured_rows, of_each, shown_names

MOST_JUDGED = 300  # labelled rows not learned from that are used to judge; predicting them takes a second or two


@dataclass(frozen=True, eq=False)  # compared by identity, as arrays have no single answer
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
        """Return metrics of each objective on the other rows; {} if there are none.

        Keys are space/objective if there are several spaces, because labels of two spaces are not comparable.
        """
        if not self.texts_of_others:
            return {}
        predictor = Predictor(self.checkpoint)
        others = Examples.of_table(self.others, self.texts_of_others, self.objectives)
        found = {
            space: quality(predictor.of_space(space).predict(part.texts, part.objectives), part.labels)
            for space, part in others.by_space()
        }
        several = len(found) > 1
        return {f"{space}/{name}" if several else name: x for space, of in found.items() for name, x in of.items()}


def adapt_to_tables(checkpoint: Checkpoint, config: AdaptConfig, progress: bool = False) -> Adapted:
    """Learn objectives from labelled rows of tables, see ``nasrlm.adapt``; other objectives are not affected.

    Args:
        checkpoint: checkpoint to start from; it is not changed.
        config: what to learn.
        progress: show bars on stderr.

    Warns:
        UserWarning: several rows are of one network, an objective is known already, or as for ``nasrlm.adapt``.

    Raises:
        ValueError: ``config`` is not an AdaptConfig, a table cannot be read or has too few labels of a space, or as for
            ``nasrlm.adapt``.
    """
    if not isinstance(config, AdaptConfig):
        raise ValueError(f"adapt_to_tables: expected an AdaptConfig, got {type(config).__name__}. {IN_MEMORY}")
    rng, names = np.random.default_rng(config.seed), config.objectives
    check_adaptable(checkpoint, names)
    measured = measured_rows(config.files, config.space, names)
    frame, shares = _rows_to_draw_from(measured, config)
    for rows, table in zip(*of_each(frame, config.files), strict=True):
        rows_to_convert(rows, table)  # fails now for a space that does not exist, not after a minute for another space
    _warn_of_known(checkpoint, config, [*shares])
    parts = [
        _part_of(checkpoint, config, frame[row_spaces(frame) == space], share, measured, rng, progress)
        for space, share in shares.items()
    ]
    found, counts = _learn(checkpoint, config, parts, progress)
    learned = pd.concat([part.learned for part in parts])
    found = with_step(found, adapt_step(names, counts, config.files))
    others = pd.concat([part.others for part in parts])
    texts_of_others = [text for part in parts for text in part.texts_of_others]
    judged = rng.permutation(len(others))[:MOST_JUDGED]
    return Adapted(found, learned, others.iloc[judged], [texts_of_others[row] for row in judged], names)


def _warn_of_known(checkpoint: Checkpoint, config: AdaptConfig, spaces: Sequence[str]) -> None:
    """Warn of objectives of which the checkpoint forgets something: in these spaces, or in all."""
    known = [name for name in config.objectives if name in checkpoint.objectives]
    adapted = [name for name in known if name in checkpoint.read_off]
    if again := [name for name in known if not (config.beside and name in adapted)]:
        keep = " Give the earlier tables too, or keep what other spaces taught (`--beside`, beside=True)."
        advice = keep if adapted else ""
        warn_caller(
            f"adapt: {', '.join(again)}: already known; the new checkpoint predicts from these labels alone, in every "
            f"space.{advice}"
        )
    for name in adapted if config.beside else ():
        taught = checkpoint.taught_spaces(name)
        if here := [space for space in spaces if known_as(space, taught) in taught]:
            warn_caller(
                f"adapt: {name}: already learned from networks of {', '.join(here)}; the new checkpoint predicts these "
                "from the new labels alone. Give the earlier tables too."
            )


@dataclass(frozen=True)
class _Part:
    """The networks of one space.

    Attributes:
        pool: N texts, first those of rows; if networks were measured several times, last those of these measurements.
        labels: (N, M), NaN where a text has none to learn from.
        names: of the N texts, for warnings; empty for texts drawn from the space.
        learned: (n,) rows to learn from.
        texts_of_learned: their texts.
        others: other labelled rows.
        texts_of_others: their texts.
    """

    pool: Pool
    labels: FloatArray
    names: Sequence[str]
    learned: pd.DataFrame
    texts_of_learned: Sequence[str]
    others: pd.DataFrame
    texts_of_others: Sequence[str]


def _part_of(
    checkpoint: Checkpoint,
    config: AdaptConfig,
    rows: pd.DataFrame,
    samples: int,
    measured: pd.DataFrame,
    rng: np.random.Generator,
    progress: bool,
) -> _Part:
    """Choose the networks to learn from, and a pool, among rows of one space, one per network; see ``_Part``."""
    frame = rows.iloc[_pool_rows(_labelled(rows, config), samples, samples + config.pool, rng)]
    texts = texts_of_tables(*of_each(frame, config.files), progress=progress)
    texts += _more_texts(frame, config, samples + config.pool - len(frame), rng, progress)
    pool = make_pool(checkpoint, texts, progress, space=row_spaces(frame).iloc[0])
    candidates = np.flatnonzero(_labelled(frame, config))
    if config.choose == "active" and samples < len(candidates):  # ordering all of thousands would take minutes
        used = choose_diverse(pool, candidates, samples)
    else:
        used = rng.choice(candidates, samples, replace=False)
    learned, places = [texts[row] for row in used], places_of(texts)
    others = candidates[~np.isin(places[candidates], places[used])]
    name_of = dict(zip(texts, shown_names(frame, config.files), strict=False))
    pool, labels = _with_labels(pool, used, frame.iloc[used], measured, config.objectives)
    names = [name_of.get(text, "") for text in pool.texts]
    return _Part(pool, labels, names, frame.iloc[used], learned, frame.iloc[others], [texts[row] for row in others])


def _learn(
    checkpoint: Checkpoint, config: AdaptConfig, parts: Sequence[_Part], progress: bool
) -> tuple[Checkpoint, list[int]]:
    """Adapt to one objective after another, each from one space after another.

    Returns:
        The adapted checkpoint, and the number of networks whose labels of each objective it has learned from.
    """
    counts: list[int] = []
    for column, name in enumerate(tqdm(config.objectives, "learn", unit="objective", disable=not progress)):
        count = 0
        for number, part in enumerate([part for part in parts if part.learned[name].notna().any()]):
            given = part.labels[:, column]
            kept = without_strays(part.pool, name, given, names=part.names) if config.leave_out_strays else given
            strays = set(itertools.compress(part.pool.texts, np.isfinite(given) & np.isnan(kept)))
            known = itertools.compress(part.texts_of_learned, part.learned[name].notna())
            count += sum(text not in strays for text in known)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", SEEM_FRACTIONS)  # given already when the tables were read
                beside = config.beside or number > 0
                checkpoint = adapt(checkpoint, part.pool, name, kept, progress, names=part.names, beside=beside)
        counts.append(count)
    return checkpoint, counts


def _rows_to_draw_from(measured: pd.DataFrame, config: AdaptConfig) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return all rows, one per network, and the number of labelled ones of each space to learn from.

    Raises:
        ValueError: the tables have too few labels, or so many are too large that some of those are learned for sure; or
            choices are to be drawn as in the tables, but a table has texts.
    """
    frame = _one_a_network(measured, config.objectives)
    labelled = _labelled(frame, config)
    wanted = _count(frame, int(labelled.sum()), config)
    for name in config.objectives:  # before thousands of texts are converted and predicted
        check_sizes(name, frame[name][labelled].to_numpy(dtype=np.float64, na_value=np.nan), wanted)
    if config.like_table and written_texts(frame):
        raise ValueError(f"{named(config.files)}: like_table: expected architectures, got texts.")
    _warn_of_spaces_left_out(frame, labelled, config.objectives)
    return frame, _shares(frame[labelled], wanted, config)


def _warn_of_spaces_left_out(frame: pd.DataFrame, labelled: NDArray[np.bool_], names: Sequence[str]) -> None:
    """Warn of spaces that have labels, but of which no row is among the (rows,) flags of those with all labels."""
    spaces, has_any = row_spaces(frame), frame[list(names)].notna().any(axis=1)
    if left_out := sorted(set(spaces[has_any]) - set(spaces[labelled])):
        warn_caller(
            f"adapt: {', '.join(left_out)}: not learned, because no network has labels of {' and '.join(names)}. Learn "
            "objectives with labels in different rows one after another, or use all labels (`--samples all`, "
            "samples=None)."
        )


def _shares(labelled: pd.DataFrame, wanted: int, config: AdaptConfig) -> dict[str, int]:
    """Return the number of networks of each space to learn from: as many of each, unless it has fewer.

    Raises:
        ValueError: a space would have a single label.
    """
    spaces = row_spaces(labelled)
    shares: dict[str, int] = {}
    counts = spaces.value_counts().sort_values()
    for number, (space, count) in enumerate(counts.items()):
        shares[str(space)] = min(count, (wanted - sum(shares.values())) // (len(counts) - number))
    for name in config.objectives if len(shares) > 1 else ():
        for space, count in labelled[name].notna().groupby(spaces).sum().items():
            share = shares[str(space)]
            if share == 0 or min(count, share) == 1:
                raise ValueError(
                    f"{named(config.files)}: expected 2 or more labels of {name} of each space to learn from, got "
                    f"{min(count, share)} of {space}. Leave this space out, or use more samples."
                )
    return dict(sorted(shares.items()))


def _one_a_network(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the first row of each network, with the means of the network's labels."""
    rows, labels = mean_labels(_networks(frame), frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan))
    if len(rows) < len(frame):
        warn_caller(
            f"adapt: {len(frame) - len(rows):,} rows repeat networks of other rows: the mean of each network's labels "
            "is used."
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

    If networks to learn from were measured several times, the rows of all of these networks are appended to the pool,
    each with its own labels.

    Args:
        known: pool of N texts.
        used: (n,) indices of the networks to learn from.
        learned: n rows of these networks, with the means of their labels.
        measured: all labelled rows.
        names: names of the M objectives.
    """
    rows, places = _rows_of_networks(measured, learned, names)
    if len(rows) > len(learned):
        first = len(known.texts)
        known, learned = known.at(np.concatenate([np.arange(first), used[places]])), rows
        used = np.arange(first, len(known.texts))
    labels = np.full((len(known.texts), len(names)), np.nan)
    labels[used] = learned[list(names)].to_numpy(dtype=np.float64, na_value=np.nan)
    return known, labels


def _rows_of_networks(
    measured: pd.DataFrame, learned: pd.DataFrame, names: Sequence[str]
) -> tuple[pd.DataFrame, NDArray[np.intp]]:
    """Return all labelled rows of the networks in ``learned``, and the (rows,) positions of their networks in it."""
    place_of = {network: place for place, network in enumerate(_networks(learned))}
    labelled = measured[measured[list(names)].notna().any(axis=1)]
    places = np.array([place_of.get(network, -1) for network in _networks(labelled)], dtype=np.intp)
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


def _more_texts(
    frame: pd.DataFrame, config: AdaptConfig, count: int, rng: np.random.Generator, progress: bool
) -> list[str]:
    """Return texts of architectures drawn from the space of the rows; none if the rows have texts."""
    if written_texts(frame):
        return []
    space, sample = get_space(only_space(frame)), None
    if config.like_table:
        parts = zip(*of_each(frame, config.files), strict=True)
        given = [x for rows, table in parts for x in row_genotypes(space, parsed_rows(space, rows, table), table)]
        sample = sample_like(space, given)
    drawn = [(sample or space.sample)(rng) for _ in range(max(count, 0))]
    return to_onnx_texts(space, drawn, measured=True, progress=progress)
