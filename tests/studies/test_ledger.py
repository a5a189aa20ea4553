"""A ledger keeps what was decided in order, each key once, and its file gives it back."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from studies.columns import RESERVED
from studies.folder import StudyError
from studies.history import CHOSEN, EVALUATED, PRUNED
from studies.ledger import Entry, Ledger
from tests.studies.guided import guided_config, run
from tests.studies.scenes import SPACE

CONFIG = guided_config()


def entry(number: int, batch: int = 0, status: str = CHOSEN, **given: object) -> Entry:
    """Of an architecture with a key of its own."""
    return Entry.of(SPACE, SPACE.decode([0, number // 4, 4, number % 4]), 2, batch=batch, status=status, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("decided", "next_batch", "barren"),
    [
        ([], 0, 0),
        ([(0, PRUNED)], 1, 1),
        ([(0, PRUNED), (0, CHOSEN)], 1, 0),
        ([(0, EVALUATED), (1, PRUNED), (2, PRUNED)], 3, 2),
        ([(0, EVALUATED), (3, EVALUATED), (4, PRUNED)], 5, 1),
    ],
)
def test_batches_are_numbered_and_those_with_nothing_to_evaluate_counted(
    decided: Sequence[tuple[int, str]], next_batch: int, barren: int
) -> None:
    ledger = Ledger(CONFIG, [entry(number, *what) for number, what in enumerate(decided)])
    assert (ledger.next_batch, ledger.barren_batches) == (next_batch, barren)


def test_entries_stand_in_the_order_in_which_they_were_decided() -> None:
    ledger = Ledger(CONFIG)
    ledger.add([entry(0, 0, PRUNED), entry(1), entry(2)])
    ledger.add([entry(3, 1), entry(0, 1)])  # what was pruned is chosen after all
    assert [(found.key, found.batch) for found in ledger.chosen] == [(entry(x).key, x in (0, 3)) for x in (1, 2, 3, 0)]
    for number in (1, 3, 0):
        ledger.record(entry(number).key, np.array([float(number), 9.0]))
    assert [found.key for found in ledger.chosen] == [entry(2).key]
    np.testing.assert_array_equal(ledger.results, [[1, 9], [3, 9], [0, 9]])
    labels = ledger.labels(2)
    assert labels["architecture"].tolist() == [entry(1).architecture, entry(3).architecture]
    assert labels[list(CONFIG.objectives)].to_numpy().tolist() == [[1, 9], [3, 9]]


def test_a_ledger_is_read_as_written(tmp_path: Path) -> None:
    predicted = np.arange(6.0).reshape(2, 3)
    ledger = Ledger(
        CONFIG,
        [
            entry(0, 0, EVALUATED, predicted=predicted, real=np.array([90.0, 2.0])),
            entry(1, 1, PRUNED, predicted=predicted * [[1], [np.nan]], stage=1, reason="too slow"),
            entry(2, 1, EVALUATED, real=np.array([80.0, np.nan])),
            entry(3, 1, predicted=predicted + 1),
        ],
    )
    ledger.save(tmp_path / "history.parquet")
    loaded = Ledger.load(tmp_path / "history.parquet", CONFIG)
    for found, written in zip(loaded.entries, ledger.entries, strict=True):
        for field in fields(Entry):
            np.testing.assert_array_equal(getattr(found, field.name), getattr(written, field.name))


def test_the_history_of_another_study_is_no_ledger(tmp_path: Path) -> None:
    Ledger(CONFIG, [entry(0)]).history().save(tmp_path / "history.parquet")
    with pytest.raises(StudyError, match=r"expected the history of a guided search, got .{1,200}\. Restore the file"):
        Ledger.load(tmp_path / "history.parquet", CONFIG)


def test_an_entry_is_of_its_architecture_unless_more_is_given() -> None:
    architecture = SPACE.decode([0, 1, 4, 3])
    usual = Entry.of(SPACE, architecture, 2)
    assert (usual.architecture, usual.key, usual.genotype) == (
        "0-1-4-3",
        SPACE.architecture_key(architecture),
        (0, 1, 4, 3),
    )
    assert (usual.batch, usual.status, usual.stage, usual.reason, usual.feasible) == (0, CHOSEN, 0, "", True)
    assert np.isnan(usual.predicted).all()
    assert usual.real.shape == (2,)
    given = Entry.of(SPACE, architecture, 2, key="known", feasible=False)
    assert (given.key, given.feasible) == ("known", False)


def test_all_columns_of_a_study_other_than_those_of_objectives_are_reserved(tmp_path: Path) -> None:
    config = guided_config(trials=4, constraints=["soft:energy_mj@toy<=9"])
    run(config, tmp_path, figures=False)
    history, front = pd.read_parquet(tmp_path / "history.parquet"), pd.read_csv(tmp_path / "front.csv")
    tables = (history, front, Ledger(config).labels(0))
    names = {name for table in tables for name in table.columns if not name.startswith(config.objectives)}
    assert names == set(RESERVED)
