"""A gate of several threads, of several workers, copied, or of a study that is not its own."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from nasrlm.optuna import ParetoGate
from tests.studies.optuna_scenes import make_gate, make_study, objective
from tests.studies.scenes import SPACE, Row

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def test_what_another_worker_enqueued_meanwhile_is_not_enqueued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    study, trained = make_study(), list[Row]()
    first, second = make_gate(), make_gate()
    study.optimize(objective(first, trained), n_trials=4)
    propose = first._advisor.propose

    def slowly(*arguments: Any, **options: Any) -> Any:
        entries = propose(*arguments, **options)
        assert len(second.enqueue(study, 3)) == 3
        return entries

    monkeypatch.setattr(first._advisor, "propose", slowly)
    assert first.enqueue(study, 3) == []
    assert len(study.get_trials(states=(TrialState.WAITING,))) == 3


def test_a_sampler_that_cannot_be_used_is_named() -> None:
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=optuna.samplers.CmaEsSampler())
    with pytest.raises(ValueError, match=r"from the sampler or queue, got: .*CmaEsSampler cannot be used\.$"):
        make_gate().suggest(study.ask())


def test_a_gate_that_comes_later_or_runs_elsewhere_knows_the_study() -> None:
    study, trained = make_study("RandomSampler"), list[Row]()
    study.optimize(objective(make_gate(), trained), n_trials=30)
    late = make_gate()
    worst = study.ask()
    slow = SPACE.decode((0, 0, 1, 3))
    with pytest.raises(optuna.TrialPruned, match="dominated by"):
        late.check(worst, slow)
    assert set(late.gate.names) == {trial.user_attrs["architecture"] for trial in study.best_trials}


def test_what_another_worker_evaluates_now_is_left_to_it() -> None:
    study = make_study()
    make_gate().check(study.ask(), SPACE.decode((0, 1, 2, 3)))
    with pytest.raises(optuna.TrialPruned, match="the same network as trial 0, which is running"):
        make_gate().check(study.ask(), SPACE.decode((2, 1, 0, 3)))
    study.tell(0, state=TrialState.FAIL)
    make_gate().check(study.ask(), SPACE.decode((2, 1, 0, 3)))


def test_threads_may_share_a_gate() -> None:
    gate, study, trained = make_gate(), make_study("RandomSampler"), list[Row]()
    callbacks = [gate.adapt_callback(every=5), gate.enqueue_callback(count=3)]
    study.optimize(objective(gate, trained), n_trials=60, n_jobs=4, callbacks=callbacks)
    assert sum(trial.state.is_finished() for trial in study.trials) == 60
    keys = [SPACE.architecture_key(row) for row in trained]
    assert len(keys) == len(set(keys)) > 5


COPIES = [
    pytest.param(lambda gate: pickle.loads(pickle.dumps(gate)), id="pickle"),
    pytest.param(deepcopy, id="deepcopy"),
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copied_gate_goes_on_by_itself(copied: Callable[[Any], Any]) -> None:
    gate, study, trained = make_gate(to_params=None), make_study("RandomSampler"), list[Row]()
    study.optimize(objective(gate, trained), n_trials=12, callbacks=[gate.adapt_callback(every=5)])
    other, fill, learn = copied((gate, gate.enqueue_callback(count=3), gate.adapt_callback(every=5)))
    assert other.gate.names == gate.gate.names
    assert (fill.func.__self__, learn.__self__) == (other, other)
    before = gate.gate.names
    study.optimize(objective(other, trained), n_trials=24, callbacks=[fill, learn])
    assert other.gate.names != before == gate.gate.names
    study.optimize(objective(gate, trained), n_trials=1)
    assert gate.gate.names == other.gate.names
    again = copied(other)
    for row in ((0, 1, 3, 3), (4, 4, 3, 0)):
        (mine,), (theirs,) = (known._advisor.check([SPACE.decode(row)]) for known in (other, again))
        assert (mine.stage, mine.reason) == (theirs.stage, theirs.reason)
        np.testing.assert_array_equal(mine.values, theirs.values)


def test_a_gate_with_the_released_checkpoint_is_pickled() -> None:
    gate = ParetoGate("nasbench201", ["max:accuracy@cifar10", "min:latency_ms@pixel3"])
    architecture = gate.space.decode((3, 0, 0, 0, 0, 3))
    (expected,) = gate._advisor.check([architecture])
    (found,) = pickle.loads(pickle.dumps(gate))._advisor.check([architecture])
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_gate_is_of_one_study() -> None:
    gate = make_gate()
    make_study().optimize(objective(gate, []), n_trials=3)
    other = make_study()
    with pytest.raises(ValueError, match=rf"expected trials of study no-name-.*, got one of {other.study_name}"):
        gate.enqueue(other)


def test_another_study_of_the_same_name_is_told_apart() -> None:
    gate = make_gate()
    first, again = (
        optuna.create_study(
            study_name="mine", directions=["maximize", "minimize"], sampler=optuna.samplers.RandomSampler(seed=0)
        )
        for _ in range(2)
    )
    first.optimize(objective(gate, []), n_trials=3)
    with pytest.raises(ValueError, match="expected trials of study mine, got one of another study of that name"):
        again.optimize(objective(gate, []), n_trials=3)


def test_threads_fill_the_queue_once() -> None:
    gate, study = make_gate(), make_study()
    study.optimize(objective(gate, []), n_trials=4)
    fill = gate.enqueue_callback(count=5)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda trial: fill(study, trial), study.trials))
    assert len(study.get_trials(states=(TrialState.WAITING,))) == 5
