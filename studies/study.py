"""How every study begins and ends, whatever searches."""

from collections.abc import Hashable
from pathlib import Path
from typing import TypeVar

from spaces import SearchSpace
from studies.config import SearchConfig
from studies.evaluators import TableEvaluator
from studies.folder import open_folder
from studies.history import History
from studies.plots import plot_study
from studies.report import StudyResult, summarise, true_labels, write_report

A = TypeVar("A", bound=Hashable)


def open_study(
    config: SearchConfig, space: SearchSpace[A], out: Path, *, truth: TableEvaluator[A] | None, resume: bool
) -> SearchSpace[A]:
    """The space as it is searched, and the study's folder, made or opened.

    Raises:
        StudyError: ``out`` holds a study that is not to be, or cannot be, resumed.
        OSError: ``out`` cannot be written.
        ValueError: the truth lacks an objective, or a warm start cannot be read; no study is left behind.
    """
    if truth is not None:
        true_labels(config, truth)  # complains now, not after the search
    searched = config.searched(space)
    for notation in config.warm_start:
        searched.parse(notation)
    open_folder(out, config, resume=resume)
    return searched


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
    """Write the report of a finished history and, unless nobody will look, its figures."""
    result = summarise(config, history, truth=truth, stopped=stopped, seconds=seconds)
    write_report(out, config, history, result, truth=truth)
    if figures:
        plot_study(out)
    return result
