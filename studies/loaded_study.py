"""A study loaded from its folder, with its losses and its front. N architectures, M goals."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nasrlm.arrays import FloatArray
from nasrlm.objective import to_losses
from studies.config import SearchConfig
from studies.folder import HISTORY_FILE, STUDY_FILE, StudyError, read_study
from studies.history import History
from studies.pareto import pareto_mask


@dataclass(frozen=True, eq=False)
class LoadedStudy:
    """A study's config and history.

    NOTE: losses and the front are computed once, so the history must not change afterwards.

    Attributes:
        config: goals and constraints.
        history: everything evaluated.
    """

    config: SearchConfig
    history: History

    @cached_property
    def losses(self) -> FloatArray:
        """The (N, M) losses of the medians; NaN if there is no result."""
        return to_losses(self.config.goals, self.history.medians()[:, : len(self.config.goals)])

    @cached_property
    def front_rows(self) -> list[int]:
        """The rows of the history on the front of feasible architectures, best in the first goal first."""
        feasible = np.flatnonzero(self.history.feasible)
        rows = feasible[pareto_mask(self.losses[feasible])]
        return [int(row) for row in rows[np.lexsort(self.losses[rows].T[::-1])]]


def load_study(folder: Path | str) -> LoadedStudy:
    """Load a finished or running study.

    Raises:
        StudyError: the folder holds no study, or a damaged one.
    """
    folder = Path(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of its bounds were given when it was begun
            config = SearchConfig.from_dict(read_study(folder)["config"])
    except (ValueError, TypeError) as error:
        if isinstance(error, StudyError):
            raise
        raise StudyError(f"{folder / STUDY_FILE}: expected the config of a search: {error}") from error
    return LoadedStudy(config, History.load(folder / HISTORY_FILE, config.objectives))
