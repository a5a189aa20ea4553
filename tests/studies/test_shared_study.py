"""Trials that workers share, where two of them do something at once."""

from pathlib import Path
from unittest import mock

import numpy as np
from optuna.trial import TrialState

from studies.ledger import CHOSEN, Entry, Ledger
from studies.shared_study import SharedStudy
from tests.studies import killed
from tests.studies.scenes import ToySpace

SPACE, CONFIG = ToySpace(), killed.worker_config()


def chosen(genotype: tuple[int, ...]) -> Entry:
    architecture = SPACE.decode(genotype)
    num_objectives = len(CONFIG.objectives)
    return Entry(
        architecture=SPACE.format(architecture),
        key=SPACE.architecture_key(architecture),
        genotype=genotype,
        batch=0,
        status=CHOSEN,
        stage=0,
        reason="",
        predicted=np.zeros((3, num_objectives)),
        real=np.full(num_objectives, np.nan),
    )


def test_a_result_told_while_another_worker_looks_for_the_dead_is_kept(tmp_path: Path) -> None:
    journal = str(tmp_path / "journal.log")
    with (
        SharedStudy(CONFIG, SPACE, journal, Ledger(CONFIG, [])) as evaluates,
        SharedStudy(CONFIG, SPACE, journal, Ledger(CONFIG, [])) as looks,
    ):
        with evaluates.turn():
            evaluates.add([chosen(SPACE.encode(SPACE.sample(np.random.default_rng(0))))])
            task = evaluates.take()
        assert task is not None
        is_held = looks.locks.is_held

        def told_just_before(number: int) -> bool:
            evaluates.tell(task, np.ones(len(CONFIG.objectives)))
            return is_held(number)

        with mock.patch.object(looks.locks, "is_held", told_just_before), looks.turn() as ledger:
            assert [entry.real.tolist() for entry in ledger.entries] == [[1.0] * len(CONFIG.objectives)]
        assert [trial.state for trial in looks.study.get_trials()] == [TrialState.COMPLETE]
