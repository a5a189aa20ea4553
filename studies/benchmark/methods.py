"""Methods that read numbers: counts, trees on graph features or genotypes, Gaussian processes on graph features.

A method returns (N,) scores of the N test rows of a task; a greater score means a greater expected label. n train rows,
F features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import OneHotEncoder

from nasrlm.adaptation.group_process import GroupProcess
from nasrlm.adaptation.label_scales import NormalScores
from nasrlm.arrays import FloatArray, standardised
from nasrlm.objective import Objective
from studies.benchmark.task import Task
from studies.surrogates.features import feature_groups, feature_matrix

MANY_LABELS = 1000  # number of labels from which larger trees rank better


def params(task: Task) -> FloatArray:
    """Rank by the parameters of the canonical graph; of throughputs, which shrink with size, by their negative."""
    return _count(task, "params")


def macs(task: Task) -> FloatArray:
    """Rank by the multiply-accumulates of the canonical graph; of throughputs by their negative."""
    return _count(task, "macs")


def lightgbm(task: Task) -> FloatArray:
    """Rank by boosted trees on graph features."""
    from lightgbm import LGBMRegressor  # from an extra

    values, _ = feature_matrix(task.table.features(task.rows))
    many = len(task.train) >= MANY_LABELS
    model = LGBMRegressor(
        n_estimators=1500 if many else 800,
        learning_rate=0.03 if many else 0.02,
        num_leaves=31 if many else 15,
        min_child_samples=min(5, max(1, len(task.train) // 8)),
        colsample_bytree=0.2 if many else 0.1,
        subsample=0.7,
        subsample_freq=1,
        n_jobs=1,
        verbose=-1,
        random_state=task.seed,
    )
    return _fitted(model, values, task)


def forest(task: Task) -> FloatArray:
    """Rank by a random forest on the one-hot genotype."""
    forest = RandomForestRegressor(500, max_features=0.3, n_jobs=1, random_state=task.seed)
    return _fitted(forest, _choices(task), task)


def lookup(task: Task) -> FloatArray:
    """Rank by a lookup table: a contribution of each choice of each gene, fitted by ridge regression, and summed up."""
    values, count = _choices(task), len(task.train)
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(values[:count], task.labels / max(float(task.labels.std()), 1e-9))
    sums: FloatArray = model.predict(values[count:])
    return sums


def process(task: Task) -> FloatArray:
    """Rank by a Gaussian process on groups of graph features."""
    return _process(task.groups, task)


def process_and_trees(task: Task) -> FloatArray:
    """Rank by the mean of the standardised scores of ``process`` and ``lightgbm``."""
    return (standardised(process(task)) + standardised(lightgbm(task))) / 2


def transferred(task: Task) -> FloatArray:
    """Rank by ``process`` with one more feature, the scores of ``expected_by_sources``."""
    return _process([*task.groups, expected_by_sources(task)[:, None]], task)


def sources_alone(task: Task) -> FloatArray:
    """Rank by a process that has learned from the sources' labels, and from no label of the target."""
    return expected_by_sources(task)[len(task.train) :]


def expected_by_sources(task: Task) -> FloatArray:
    """Return (n + N,) standardised scores of the task's rows by a process fitted to the ranks in each source.

    Raises:
        ValueError: the task has no sources.
    """
    if not task.sources:
        raise ValueError("methods sources, transfer: expected a protocol with sources, such as transfer-16, got none.")
    features = [row for source in task.sources for row in source.table.features(source.train)]
    scores = [NormalScores.of(source.labels).forward(source.labels) for source in task.sources]
    labelled = np.arange(len(features))
    groups = feature_groups([*features, *task.table.features(task.rows)])
    fitted = GroupProcess(groups).fit(labelled, np.concatenate(scores))
    expected = fitted.expected_scores(len(features) + np.arange(len(task.rows)))
    return standardised(expected)


def _choices(task: Task) -> FloatArray:
    """Return the (n + N, F) one-hot genotypes of the task's rows."""
    choices: FloatArray = OneHotEncoder(sparse_output=False).fit_transform(task.table.genotypes(task.rows))
    return choices


def _process(groups: Sequence[FloatArray], task: Task) -> FloatArray:
    fitted = GroupProcess(groups).fit(np.arange(len(task.train)), task.labels)
    return fitted.expected_scores(len(task.train) + np.arange(len(task.test)))


def _fitted(model: Any, values: FloatArray, task: Task) -> FloatArray:
    """Fit a regressor with scikit-learn's interface to the ranks of the labels, and return the test rows' scores."""
    count = len(task.train)
    model.fit(values[:count], NormalScores.of(task.labels).forward(task.labels))
    scores: FloatArray = model.predict(values[count:])
    return scores


def _count(task: Task, name: str) -> FloatArray:
    counts = np.array([row.get(name, 0.0) for row in task.table.features(task.test)])
    return -counts if Objective.parse(task.target.objective).is_rate else counts
