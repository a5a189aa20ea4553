"""Scores depend on no label but those that a task gives, neither of test rows nor of other train rows."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.benchmark import language_models
from studies.benchmark.language_models import LanguageModels
from studies.benchmark.protocol import Protocol, Target
from studies.benchmark.registry import METHODS
from studies.benchmark.scoring import FROM_TEXTS, scores_of
from studies.benchmark.task import Tables, Task, draw_task
from tests.nasrlm.conftest import checkpoint, checkpoint_folder  # noqa: F401
from tests.studies.benchmark.scenes import write_table

CHOOSES = "rlm-adapted-active"  # is given other rows than the task's
ACCURACIES = (Target("nasbench201", "accuracy@cifar10"), Target("nasbench_macro", "accuracy@cifar10"))
LATENCIES = (Target("nasbench201", "latency_ms@eyeriss"), Target("nasbench_macro", "latency_ms@eyeriss"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder)
    write_table(folder, rows=30, name="nasbench_macro")
    return Tables(folder)


@pytest.fixture(autouse=True)
def _small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_models, "POOL", 65)  # the 60 train rows, and a few that are drawn


def draw(tables: Tables, targets: tuple[Target, ...]) -> Task:
    protocol = Protocol(targets, (12,), sources=targets, source_labels=15)
    return draw_task(protocol, tables, targets[0], 12, seed=1)


def hidden(task: Task) -> Task:
    """The task in a table that has nonsense in place of the labels that it does not give, and no other labels."""
    table, name = copy(task.table), task.target.objective
    labels = table.labels(name).copy()
    others = np.setdiff1d(np.arange(len(labels)), task.train)
    labels[others] = 0.5 * np.random.default_rng(0).permutation(labels[others])
    table.frame = table.frame[["space", "architecture", "split"]].assign(**{name: labels})
    return replace(task, table=table, sources=tuple(map(hidden, task.sources)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in FROM_TEXTS and name != "rlm-adapted" else [])
        for name in METHODS
        if name != CHOOSES
    ],
)
@pytest.mark.usefixtures("learning_little")
def test_accuracies_that_are_not_given_change_no_score(
    tables: Tables,
    name: str,
    checkpoint_folder: Path,  # noqa: F811
) -> None:
    if METHODS[name].package:
        pytest.importorskip(METHODS[name].package, reason="needs the extra gnn")
    task = draw(tables, ACCURACIES)
    known, unknown = (
        scores_of(name, LanguageModels(steps=4, checkpoint=checkpoint_folder), x) for x in (task, hidden(task))
    )
    np.testing.assert_array_equal(known, unknown)


def test_latencies_that_are_not_given_change_no_score(
    tables: Tables,
    checkpoint_folder: Path,  # noqa: F811
) -> None:
    task = draw(tables, LATENCIES)
    known, unknown = (
        scores_of("rlm-adapted", LanguageModels(checkpoint=checkpoint_folder), x) for x in (task, hidden(task))
    )
    np.testing.assert_array_equal(known, unknown)
