"""A study as its folder holds it, and which of its rows are the front."""

import warnings
from pathlib import Path

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.objective import to_losses
from studies.config import SearchConfig
from studies.folder import HISTORY_FILE, STUDY_FILE, StudyError, read_study
from studies.history import History
from studies.pareto import pareto_mask


def load_study(folder: Path | str) -> tuple[SearchConfig, History]:
    """A finished or running study.

    Raises:
        StudyError: the folder holds none, or a damaged one.
    """
    folder = Path(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its bounds it was warned as it was begun
            config = SearchConfig.from_dict(read_study(folder)["config"])
    except (ValueError, TypeError) as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(f"{folder / STUDY_FILE}: expected a search's config: {error}") from error
    return config, History.load(folder / HISTORY_FILE, config.objectives)


def history_losses(config: SearchConfig, history: History) -> FloatArray:
    """(N, M) losses of the medians, a column a goal; NaN where there is no answer."""
    return to_losses(config.goals, history.medians()[:, : len(config.goals)])


def front_rows(config: SearchConfig, history: History) -> list[int]:
    """Rows of the history on its front of feasible architectures, best in the first goal first."""
    losses = history_losses(config, history)
    feasible = np.flatnonzero(history.feasible)
    rows = feasible[pareto_mask(losses[feasible])]
    return [int(row) for row in rows[np.lexsort(losses[rows].T[::-1])]]
