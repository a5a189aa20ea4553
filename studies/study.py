"""Open and close a study, in the same way for every kind of search."""

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pandas as pd

from nasrlm.arguments import check_flag, check_kind
from nasrlm.callers import warn_caller
from nasrlm.files import write_atomically
from spaces import ArchitectureError, SearchSpace
from spaces.registry import check_name
from studies.all_architectures import every_architecture
from studies.config import SearchConfig
from studies.constraints import check_met_together
from studies.evaluators import TableEvaluator
from studies.folder import HISTORY_FILE, STUDY_FILE, StudyError, alone_in, holds_study, open_folder, read_study
from studies.history import EVALUATED, History
from studies.loaded_study import LoadedStudy
from studies.own_space import network_doubt
from studies.report import StudyResult, summarise, write_report
from studies.space_digest import digest_of_space
from studies.truth import true_labels

A = TypeVar("A", bound=Hashable)


@contextmanager
def open_study(
    config: SearchConfig,
    space: SearchSpace[A],
    out: Path,
    *,
    truth: TableEvaluator[A] | None,
    known: Sequence[A] | None,
    resume: bool,
) -> Iterator[tuple[SearchConfig, SearchSpace[A], dict[str, A] | None]]:
    """Create or open a study's folder and lock it.

    Yields the study's config, the space with the search's keys, and all known architectures by key, None if ``known``
    is None.

    A new study that fails before its first evaluation is removed, so that a corrected one can use the folder. If a
    study cannot be resumed, the new number of trials is not recorded.

    Raises:
        StudyError: ``out`` holds a study that is running, cannot be resumed, or should not be (``resume`` is false).
        OSError: ``out`` cannot be written.
        ValueError: ``resume`` is neither true nor false; the config is of another space, or its constraints contradict
            each other; a user's space is called like a published one; the truth lacks an objective; or a warm start is
            malformed or not known. No study is left behind.
    """
    check_flag("search: resume", resume)
    if config.space not in (space.name, space.address):
        raise ValueError(f"search: expected a config of space {space.name}, got one of {config.space}.")
    check_name(space)
    searched = config.searched(space)
    for doubt in filter(None, (*(goal.doubt for goal in config.goals), network_doubt(searched))):
        warn_caller(doubt)
    check_met_together(config.constraints)
    if truth is not None:
        check_kind("truth", truth, TableEvaluator)
        true_labels(config, truth)  # raises now, not after the search
    config = replace(config, space_sha256=digest_of_space(space))
    choice = None if known is None else every_architecture(searched, known)
    _check_warm_start(config, searched, choice)
    with alone_in(out):
        is_new, (recorded, history) = not holds_study(out), _contents(out)
        config = open_folder(out, config, resume=resume)
        try:
            yield config, searched, choice
        except Exception as error:
            if is_new and not _has_evaluated(out):
                for name in (STUDY_FILE, HISTORY_FILE):
                    (out / name).unlink(missing_ok=True)
            elif not is_new and isinstance(error, StudyError) and _contents(out)[1] == history:
                write_atomically(out / STUDY_FILE, recorded)
            raise


def _contents(out: Path) -> list[bytes]:
    """Return what is in a study's file and in its history; nothing of a file that does not exist."""
    return [path.read_bytes() if path.exists() else b"" for path in (out / STUDY_FILE, out / HISTORY_FILE)]


def check_architectures(space: SearchSpace[A], architectures: Iterable[str], path: Path) -> None:
    """Check that a space still has the architectures of the history of a resumed study.

    Raises:
        StudyError: an architecture is no longer in the space.
    """
    for row, notation in enumerate(architectures):
        try:
            space.parse(notation)
        except ArchitectureError as error:
            raise StudyError(
                f"{path}, row {row}: {error} Has the space changed since then? Use another folder."
            ) from error


def _check_warm_start(config: SearchConfig, space: SearchSpace[A], known: Container[str] | None) -> None:
    keys = {space.architecture_key(space.parse(name)): name for name in config.warm_start}
    if known is not None and (unknown := [name for key, name in keys.items() if key not in known]):
        raise ValueError(
            f"warm start: expected architectures with known results, got {len(unknown)} others, the first {unknown[0]}."
        )
    if len(keys) > config.trials:
        told = f"warm start: expected at most {config.trials} architectures, as many as trials, got {len(keys)}"
        warn_caller(f"{told}: not all of them are evaluated.")


def _has_evaluated(out: Path) -> bool:
    """Return whether the history has an evaluated architecture, not only pruned and chosen ones."""
    path = out / HISTORY_FILE
    history = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    return not history.empty and ("status" not in history or EVALUATED in history["status"].to_numpy())


def close_study(
    config: SearchConfig,
    history: History,
    out: Path,
    *,
    truth: TableEvaluator[A] | None,
    stopped: str | None,
    seconds: float,
    figures: bool,
) -> StudyResult:
    """Write the report of a finished history and, if ``figures``, its figures."""
    seconds += float(read_study(out).get("seconds", 0.0))  # of the runs that were resumed
    study = LoadedStudy(config, history)
    result = summarise(study, truth=truth, stopped=stopped, seconds=seconds)
    write_report(out, study, result, truth=truth)
    if figures:
        from studies.figures.plots import plot_study  # here: importing takes 0.5 s, which would delay errors

        plot_study(out)
    return result
