"""The verb adapt: a new device, objective or space from a few labels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from tqdm import tqdm

from converters.bulk import to_onnx_texts
from nasrlm.adaptation import MOST_LABELS, adapt
from nasrlm.arrays import FloatArray
from nasrlm.checkpoint import Checkpoint, check_replaceable
from nasrlm.checkpoint_folder import folder_or_released
from nasrlm.cli.changed_checkpoint import save_changed
from nasrlm.cli.inputs import POOL, CheckpointOption, SpaceOption, listed
from nasrlm.cli.output import JsonOption, SeedOption, print_json, print_table, say, warn
from nasrlm.cli.several_tables import measured_rows, named, of_each, shown_names
from nasrlm.cli.verbs import LIST
from nasrlm.evaluation import COLUMNS
from nasrlm.examples import row_spaces
from nasrlm.metrics import Quality, quality
from nasrlm.model_card import adapted
from nasrlm.pool import Pool, check_adaptable, choose_diverse, make_pool
from nasrlm.predictor import Predictor
from nasrlm.repeated_labels import mean_labels
from spaces import get_space
from spaces.drawing import sample_like
from studies.tables import (
    only_space,
    parsed_rows,
    row_genotypes,
    row_names,
    texts_of_tables,
    written_texts,
)

MOST_PRINTED = 50  # labels; --json lists all
MOST_JUDGED = 300  # of the labelled rows that are not learned from: a second or two


def run(
    tables: Annotated[
        list[Path],
        typer.Option("--table", help="Architectures or texts with labels of the new objectives; may be repeated."),
    ],
    objectives: Annotated[str, typer.Option("--objectives", metavar=LIST, help="Names to learn, separated by commas.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the new checkpoint.")],
    samples: Annotated[str, typer.Option("--samples", help="How many labelled rows to use, or all.")] = "10",
    choose: Annotated[
        Literal["random", "active"],
        typer.Option("--choose", help="Rows by the seed, or those whose labels would tell most."),
    ] = "random",
    pool: Annotated[int, typer.Option(min=2, help="Other texts to use; learning uses their predictions.")] = POOL,
    like_table: Annotated[
        bool, typer.Option("--like-table", help="Draw other networks with each choice as often as in the table.")
    ] = False,
    space: SpaceOption = None,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Learn new objectives from a few labels; what the checkpoint knew stays as it was. Test rows are not used."""
    started, rng = time.monotonic(), np.random.default_rng(seed)
    names = listed(objectives, "--objectives")
    check_replaceable(out)
    loaded = Checkpoint.from_pretrained(checkpoint)
    check_adaptable(loaded, names)
    measured = measured_rows(tables, space, names)
    frame, wanted = _drawn_rows(measured, tables, names, samples, pool, rng)
    if like_table and not _is_of_a_space(frame):
        raise ValueError(
            f"{named(tables)}: --like-table: expected architectures of one space, got texts or several spaces."
        )
    if again := [name for name in names if name in loaded.objectives]:
        advice = " Give the labels of before too, with another --table." if loaded.added.intersection(again) else ""
        warn(f"{', '.join(again)}: known already; {out} will answer by these labels alone, in every space.{advice}")
    parts = of_each(frame, tables)
    texts = texts_of_tables(*parts, progress=True)
    texts += _more_texts(*parts, wanted + pool - len(frame), rng, like_table)
    of_spaces = sorted(set(row_spaces(frame)))
    known = make_pool(loaded, texts, progress=True, space=of_spaces[0] if len(of_spaces) == 1 else "")
    candidates = np.flatnonzero(_labelled(frame, names))
    if choose == "active" and wanted < len(candidates):  # to order all of thousands would take minutes
        used = choose_diverse(known, candidates, wanted)
    else:
        used = rng.choice(candidates, wanted, replace=False)
    learned, learned_texts = frame.iloc[used], {texts[row] for row in used}
    spaces = sorted(set(row_spaces(learned)))
    if len(spaces) > 1:
        alone = "each may be predicted better from its own labels alone, with --space and an --out of its own"
        warn(f"{', '.join(spaces)}: learned together; {alone}.")
    known, labels = _with_labels(known, used, learned, measured, names)
    name_of = dict(zip(texts, shown_names(frame, tables), strict=False))
    spelled = [name_of.get(text, "") for text in known.texts]
    for name, column in zip(tqdm(names, "learn", unit="objective"), labels.T, strict=True):
        loaded = adapt(loaded, known, name, column, progress=True, names=spelled)
    save_changed(adapted(loaded, names, wanted, tables, spaces), folder_or_released(checkpoint), out)
    others = np.array([row for row in rng.permutation(candidates) if texts[row] not in learned_texts], dtype=np.intp)
    others = others[:MOST_JUDGED]
    judged = _judged(loaded, [texts[row] for row in others], frame.iloc[others], names)
    seconds = round(time.monotonic() - started, 1)
    if json:
        print_json({"used": row_names(learned), "others": judged, "seconds": seconds})
    else:
        _print_learned(learned, tables, names)
        _print_judged(judged)
        say(f"checkpoint: {out}, {len(loaded.objectives)} objectives, {seconds} s")


def _print_learned(learned: pd.DataFrame, tables: Sequence[Path], names: Sequence[str]) -> None:
    """The labels, or the first of many."""
    shown = learned[:MOST_PRINTED]
    title = "learned from"
    if len(shown) < len(learned):
        title += f" {len(learned):,} rows, of which the first {len(shown)} are"
    cells = zip(shown_names(shown, tables), *[shown[name] for name in names], strict=True)
    print_table(["architecture", *names], [list(row) for row in cells], title)


def _judged(
    checkpoint: Checkpoint, texts: Sequence[str], frame: pd.DataFrame, names: Sequence[str]
) -> dict[str, Quality]:
    """Metrics of each objective on labelled rows that were not learned from; nothing where there are too few."""
    if not texts:
        return {}
    answer = Predictor(checkpoint).predict(texts, names)
    return quality(answer, frame[list(names)].to_numpy(dtype=np.float64))


def _print_judged(judged: Mapping[str, Quality]) -> None:
    if judged:
        rows = [[name, *found.values()] for name, found in judged.items()]
        print_table(COLUMNS[1:], rows, "on other labelled rows, which were not learned from")


def _drawn_rows(
    measured: pd.DataFrame,
    tables: Sequence[Path],
    names: tuple[str, ...],
    samples: str,
    pool: int,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, int]:
    """Networks of tables' rows for the pool, and how many labelled ones are to be learned from.

    Raises:
        ValueError: the tables have too few labels.
    """
    frame = _one_a_network(measured, names)
    labelled = _labelled(frame, names)
    wanted = _count(samples, int(labelled.sum()), tables, names)
    return frame.iloc[_pool_rows(labelled, wanted, wanted + pool, rng)], wanted


def _one_a_network(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The first row of each network, with the means of its labels."""
    rows, labels = mean_labels(_networks(frame), frame[list(names)].to_numpy(dtype=np.float64, na_value=np.nan))
    if len(rows) < len(frame):
        warn(f"{len(frame) - len(rows):,} rows are of networks of other rows: the mean of a network's labels counts.")
    return frame.iloc[rows].assign(**dict(zip(names, labels.T, strict=True)))


def _networks(frame: pd.DataFrame) -> list[str]:
    """What tells a row's network from others: its text where it has one, as that is what is learned from."""
    texts = written_texts(frame)
    named = zip(frame.index, row_spaces(frame), row_names(frame), strict=True)
    return [texts.get(row) or f"{space} {name}" for row, space, name in named]


def _with_labels(
    known: Pool, used: NDArray[np.intp], learned: pd.DataFrame, measured: pd.DataFrame, names: Sequence[str]
) -> tuple[Pool, FloatArray]:
    """A pool and (its texts, M) labels, NaN where there is none.

    Where networks that are learned from were measured several times, these rows stand behind the pool, each with its
    own labels.

    Args:
        known: N texts.
        used: (n,) those that are learned from.
        learned: (n,) rows of theirs, with the means of their labels.
        measured: rows that they may be of.
        names: of the M objectives.
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
    """All labelled rows of what is learned from, and (rows,) which of it each is of; none where each has one row."""
    place_of = {network: place for place, network in enumerate(_networks(learned))}
    labelled = measured[measured[list(names)].notna().any(axis=1)]
    places = np.array([place_of.get(network, -1) for network in _networks(labelled)], dtype=np.intp)
    if np.count_nonzero(places >= 0) == len(learned):
        places[:] = -1
    return labelled[places >= 0], places[places >= 0]


def _labelled(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[np.bool_]:
    """(rows,) flags of those that have all these labels."""
    return frame[list(names)].notna().all(axis=1).to_numpy()


def _count(samples: str, labelled: int, tables: Sequence[Path], names: tuple[str, ...]) -> int:
    if samples != "all" and not (samples.isdecimal() and int(samples) > 1):
        raise ValueError(f"--samples: expected all or a number above 1, got {samples!r}.")
    wanted = labelled if samples == "all" else int(samples)
    if wanted > MOST_LABELS:
        raise ValueError(
            f"--samples: expected at most {MOST_LABELS:,} labels, got {wanted:,}. Name a number, or use `nasrlm train`."
        )
    if not 2 <= wanted <= labelled:
        advice = " Learn objectives of different rows one after the other, with --checkpoint." * (len(names) > 1)
        advice = advice or " Use them all: --samples all." * (labelled > 1)
        raise ValueError(
            f"{named(tables)}: expected at least {max(wanted, 2)} rows outside the test split with labels of "
            f"{' and '.join(names)}, got {labelled}.{advice}"
        )
    return wanted


def _pool_rows(labelled: NDArray[np.bool_], wanted: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of the table for the pool, in its order: random ones, with enough labelled ones among them."""
    order = rng.permutation(len(labelled))
    first = order[labelled[order]][:wanted]
    others = order[~np.isin(order, first)]
    return np.sort(np.concatenate([first, others[: size - len(first)]]))


def _is_of_a_space(frame: pd.DataFrame) -> bool:
    """Whether architectures like its rows can be drawn."""
    return "text" not in frame and bool(only_space(frame))


def _more_texts(
    frames: Sequence[pd.DataFrame], tables: Sequence[Path], count: int, rng: np.random.Generator, like_table: bool
) -> list[str]:
    """Of architectures drawn from the tables' space; none where their rows are of several spaces or have texts."""
    if not _is_of_a_space(frame := pd.concat(frames)):
        return []
    space, sample = get_space(only_space(frame)), None
    if like_table:
        of_rows = zip(frames, tables, strict=True)
        given = [x for rows, table in of_rows for x in row_genotypes(space, parsed_rows(space, rows, table), table)]
        sample = sample_like(space, given)
    drawn = [(sample or space.sample)(rng) for _ in range(max(count, 0))]
    return to_onnx_texts(space, drawn, measured=True, progress=True)
