"""Constraints: how they are spelled, and what they make of results."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.config import SearchConfig
from studies.constraints import Constraint, check_met_together, feasible_mask, preferred_losses
from studies.gate import Gate
from studies.loaded_study import load_study
from studies.search import search
from tests.studies.scenes import ToyEvaluator, ToySpace, toy_config

pytestmark = pytest.mark.usefixtures("without_figures")


def test_violations_are_shares_of_the_bound() -> None:
    at_most = Constraint.parse("latency_ms@pixel3<=10")
    np.testing.assert_allclose(at_most.violation(np.array([5.0, 10.0, 15.0])), [-0.5, 0.0, 0.5])
    at_least = Constraint.parse(" accuracy@cifar10 >= 50 ")
    np.testing.assert_allclose(at_least.violation(np.array([25.0, 75.0, np.nan])), [0.5, -0.5, np.nan])
    np.testing.assert_allclose(Constraint.parse("a@b<=0").violation(np.array([2.0])), [2.0])
    assert str(at_most) == "latency_ms@pixel3<=10"
    assert Constraint.parse(str(at_least)) == at_least
    assert str(Constraint("latency_ms@pixel3", True, np.float64(10))) == str(at_most)  # as study.json has it


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("params", "<=", 10), "constraint: at_most: expected True or False, got '<='."),
        (("params", True, 10, "soft"), "constraint: soft: expected True or False, got 'soft'."),
        (("params", True, "10"), "constraint: expected a finite number as bound, got '10'."),
        (("params", True, float("nan")), "constraint: expected a finite number as bound, got nan."),
        (("params<=10", True, 10), "objective: expected metric_unit@context, got 'params<=10'."),
    ],
)
def test_a_constraint_made_without_parsing_is_checked(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Constraint(*arguments)


def test_what_breaks_a_soft_constraint_is_feasible_and_counts_as_worse() -> None:
    soft = Constraint.parse("soft:latency_ms@toy<=10")
    assert (str(soft), soft.soft, Constraint.parse(str(soft))) == ("soft:latency_ms@toy<=10", True, soft)
    config = toy_config(constraints=[str(soft), "energy_mj@toy<=7"])
    assert SearchConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    values = np.array([[90.0, 12.0, 5.0], [90.0, 10.0, 8.0], [0.0, 20.0, 7.0]])
    assert feasible_mask(config.objectives, config.constraints, values).tolist() == [True, False, True]
    expected = [[-72.0, 14.4], [-90.0, 10.0], [0.0, 40.0]]
    np.testing.assert_allclose(preferred_losses(config.goals, config.constraints, values), expected)
    assert [str(bound) for bound in config.hard_constraints] == ["energy_mj@toy<=7"]


@pytest.mark.parametrize("bound", ["10", "0.30000000000000004", "1e-05", "1e+16", "-2.5", "123456789.125"])
def test_bounds_are_spelled_to_the_last_digit(bound: str) -> None:
    constraint = Constraint.parse(f"latency_ms@a<={bound}")
    assert str(constraint) == f"latency_ms@a<={bound}"
    assert constraint.violation(np.array([float(bound)])) == 0


@pytest.mark.parametrize(
    "text", ["latency_ms@a", "latency_ms@a<10", "a@b<=ten", "a@b<=nan", "<=1", "a@b==1", "soft:a@b", "soft:<=1"]
)
def test_other_constraints_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="constraint: expected objective<=number or objective>=number"):
        Constraint.parse(text)


@pytest.mark.parametrize(
    "bounds",
    [("latency_ms@toy<=5", "latency_ms@toy>=6"), ("latency_ms@toy<=-1",), ("accuracy@toy>=101", "latency_ms@toy<=5")],
)
def test_bounds_that_nothing_can_meet_are_refused(bounds: tuple[str, ...], tmp_path: Path) -> None:
    expected = re.escape(f"can be met together, got {bounds[0]}")
    with pytest.raises(ValueError, match=expected):
        search(toy_config(constraints=bounds), ToySpace(), ToyEvaluator(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match=expected):
        Gate(toy_config().goals, list(map(Constraint.parse, bounds)))
    soft = toy_config(constraints=[f"soft:{bound}" for bound in bounds], trials=10)
    assert search(soft, ToySpace(), ToyEvaluator(), tmp_path / "soft", figures=False).evaluations == 10


@pytest.mark.parametrize("bounds", [("latency_ms@toy<=5", "latency_ms@toy<=8"), ("accuracy@toy>=5", "accuracy@toy>=3")])
def test_several_bounds_on_one_side_are_allowed(bounds: tuple[str, ...]) -> None:
    check_met_together(list(map(Constraint.parse, bounds)))


def test_bounds_that_meet_in_one_value_are_allowed(tmp_path: Path) -> None:
    config = toy_config(constraints=["latency_ms@toy<=5", "latency_ms@toy>=5"], trials=10)
    search(config, ToySpace(), ToyEvaluator(), tmp_path, figures=False)


def test_a_bound_that_looks_like_a_fraction_is_told() -> None:
    with pytest.warns(UserWarning, match=r"in percent, 0 to 100, got 'accuracy@a>=0\.93'\. .* write 93\.$"):
        Constraint.parse("accuracy@a>=0.93")


@pytest.mark.filterwarnings("error")
def test_a_study_that_is_read_again_is_not_warned_of_again(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="in percent") as told:
        search(toy_config(trials=4, constraints=["accuracy@toy>=0.9"]), ToySpace(), ToyEvaluator(), tmp_path)
    assert len(told) == 1
    load_study(tmp_path)
