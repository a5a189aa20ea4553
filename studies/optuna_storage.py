"""A study in an Optuna storage, for dashboards and for other programs to read."""

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import OptunaError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial
from sqlalchemy.exc import SQLAlchemyError

from nasrlm.objective import FloatArray
from studies.config import SearchConfig
from studies.folder import StudyError


def directions(config: SearchConfig) -> list[StudyDirection]:
    """Optuna's word for the direction of each goal."""
    return [StudyDirection.MAXIMIZE if goal.maximise else StudyDirection.MINIMIZE for goal in config.goals]


def open_storage(storage: str) -> BaseStorage:
    """A database by its URL, or a journal file.

    Raises:
        StudyError: it cannot be opened.
    """
    try:
        return RDBStorage(storage) if "://" in storage else JournalStorage(JournalFileBackend(storage))
    except (SQLAlchemyError, OptunaError, OSError, ImportError) as error:
        reason = " ".join(str(error).split())[:200]
        raise StudyError(
            f"storage: expected a database URL or a journal file, got {storage!r}: {reason}. "
            "Example: sqlite:///study.db."
        ) from error


def study_name(config: SearchConfig) -> str:
    """Space, sampler, seed, and eight digits of the whole config."""
    digest = hashlib.sha256(json.dumps(config.to_dict(), sort_keys=True).encode()).hexdigest()[:8]
    return f"{config.space}-{config.sampler}-{config.seed}-{digest}"


def gene_distributions(sizes: Sequence[int]) -> dict[str, BaseDistribution]:
    """A genotype's parameters, one a gene."""
    return {f"gene_{index}": CategoricalDistribution(tuple(range(size))) for index, size in enumerate(sizes)}


def to_trial(config: SearchConfig, sizes: Sequence[int], genotype: Sequence[int], values: FloatArray) -> FrozenTrial:
    """A finished trial from a genotype and the (M,) values of ``config.objectives``; pruned where one is NaN."""
    distributions = gene_distributions(sizes)
    params = dict(zip(distributions, genotype, strict=True))
    if np.isnan(values).any():
        return create_trial(state=TrialState.PRUNED, params=params, distributions=distributions)
    by_name = dict(zip(config.objectives, values.tolist(), strict=True))
    return create_trial(
        values=[by_name[goal.objective] for goal in config.goals],
        params=params,
        distributions=distributions,
        constraints={
            str(bound): bound.violation(values[[config.objectives.index(bound.objective)]]).item()
            for bound in config.constraints
        },
    )


class StoredStudy:
    """The copy of a search's finished trials in ``config.storage``.

    Args:
        config: names the storage, and by ``study_name`` the study.
        is_new: whether the search begins; a study of its name is then a mistake.

    Raises:
        StudyError: the storage cannot be opened, or holds the study of a search that begins.
    """

    def __init__(self, config: SearchConfig, *, is_new: bool) -> None:
        assert config.storage is not None, "a search without a storage has no stored study"
        self.storage = config.storage
        self.study = optuna.create_study(
            storage=open_storage(config.storage),
            study_name=study_name(config),
            directions=directions(config),
            load_if_exists=True,
        )
        self.study.set_metric_names([goal.objective for goal in config.goals])
        self._known = self.study.get_trials(deepcopy=False)
        self._given = 0
        if self._known and is_new:
            raise StudyError(
                f"storage {config.storage}: expected no study {self.study.study_name}, got one with "
                f"{len(self._known)} trials. Resume it with its folder, or choose another storage or seed."
            )

    @property
    def given(self) -> int:
        """How many trials it was given, those stored before among them."""
        return self._given

    def extend(self, trials: Sequence[FrozenTrial], architectures: Sequence[str]) -> None:
        """Store finished trials with their notations; those stored before an interruption are only compared.

        Raises:
            StudyError: the storage holds other trials in their place.
        """
        for trial, architecture in zip(trials, architectures, strict=True):
            if self._given < len(self._known):
                self._compare(self._known[self._given], trial)
            else:
                trial.set_user_attr("architecture", architecture)
                self.study.add_trial(trial)
            self._given += 1

    def _compare(self, known: FrozenTrial, trial: FrozenTrial) -> None:
        if known.params != trial.params:
            raise StudyError(
                f"storage {self.storage}: expected trial {known.number} of {self.study.study_name} to be "
                f"{trial.params}, got {known.params}. Was the study changed? Choose another storage."
            )
