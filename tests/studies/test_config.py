"""Search configs."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nasrlm.objective import Goal
from spaces import get_space
from studies.config import SearchConfig, twins_of, without_password
from studies.guide import Guide
from tests.studies.scenes import toy_config


def test_config_survives_json() -> None:
    config = toy_config(constraints=["latency_ms@toy<=10", "energy_mj@toy>=0.1"], sampler="tpe", storage="s.log")
    assert SearchConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.objectives == ("accuracy@toy", "latency_ms@toy", "energy_mj@toy")
    guided = toy_config(guide={"acquisition": "median", "gate": False, "batch_size": 3})
    assert guided.guide == Guide(acquisition="median", gate=False, batch_size=3)
    assert SearchConfig.from_dict(json.loads(json.dumps(guided.to_dict()))) == guided
    assert "joint" not in guided.to_dict()["guide"]  # nor is it in studies written before
    joint = toy_config(guide={"joint": True})
    assert SearchConfig.from_dict(json.loads(json.dumps(joint.to_dict()))) == joint
    assert "earlier_trials" not in config.to_dict()
    more = toy_config(earlier_trials=[20, 30])
    assert SearchConfig.from_dict(json.loads(json.dumps(more.to_dict()))) == more
    assert "options" not in config.to_dict()
    asked = toy_config(options={"seed": 3, "no_gate": True})
    assert SearchConfig.from_dict(json.loads(json.dumps(asked.to_dict()))).options == asked.options
    own = toy_config(guide={"risk": {"latency_ms@toy": 0.2}})
    assert SearchConfig.from_dict(json.loads(json.dumps(own.to_dict()))) == own


def test_a_guide_may_have_numbers_of_numpy() -> None:
    guide = Guide(batch_size=np.int64(3), risk={"latency_ms@toy": np.float32(0.25)})  # type: ignore[arg-type, dict-item]
    assert json.loads(json.dumps(guide.to_dict())) == Guide(batch_size=3, risk={"latency_ms@toy": 0.25}).to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"goals": []}, "expected goals on different objectives, got []"),
        ({"goals": ["max:a@b", "min:a@b"]}, "expected goals on different objectives"),
        (
            {"goals": ["max:a@b", "min:key"]},
            "expected objectives not named like other columns of its tables, order, architecture, key, ",
        ),
        ({"constraints": ["status<=1", "soft_met>=1"]}, "; got status, soft_met. Add a context, such as status@mine."),
        ({"goals": None}, "search: expected a list of goals, got None. Put it in a list."),
        ({"constraints": 3}, "search: expected a list of constraints, got 3. Put it in a list."),
        ({"space": get_space("nasbench201")}, "search: expected space as a word, got NASBench201("),
        ({"engine": ["optuna"]}, "search: expected engine as a word, got ['optuna']."),
        ({"guide": {"joint": "no"}}, "search: joint: expected True or False, got 'no'."),
        ({"trials": 0}, "search: trials: expected 1 or more, got 0."),
        ({"trials": "60"}, "search: trials: expected a whole number, got '60'."),
        ({"seed": -1}, "search: seed: expected 0 or more, got -1."),
        ({"population_size": 1}, "search: population_size: expected 2 or more, got 1."),
        (
            {"sampler": "cma"},
            "got optuna with cma. Choose from optuna: nsga2, nsga3, tpe, gp, random; pymoo: nsga2, agemoea, smsemoa.",
        ),
        ({"engine": "pymoo", "sampler": "tpe"}, "got pymoo with tpe"),
        ({"engine": "nevergrad"}, "got nevergrad with nsga2"),
        ({"storage": 3}, "search: expected storage as a URL or the path of a journal file, got 3."),
        ({"engine": "pymoo", "storage": "sqlite:///a.db"}, "expected engine optuna with a storage, got pymoo"),
        ({"guide": {"acquisition": "luck"}}, "expected acquisition to be one of hypervolume, median, got 'luck'"),
        ({"guide": {"risk": 0.7}}, "gate: expected a risk between 0 and 0.5, got 0.7"),
        ({"guide": {"risk": {"latency_ms@toy": 0.7}}}, "expected a risk between 0 and 0.5, got 0.7 of latency_ms@toy"),
        ({"guide": {"risk": {"a@b": 0.1}}}, "gate: expected risks of accuracy@toy, latency_ms@toy, got a@b"),
        ({"guide": {"acquisition": "median", "joint": True}}, "expected joint samples with acquisition hypervolume"),
        ({"guide": {"batch_size": 0}}, "search: batch_size: expected 1 or more, got 0."),
        ({"guide": {"samples": 2.5}}, "search: samples: expected a whole number, got 2.5."),
        ({"guide": {"generation": 3}}, "search guide: expected acquisition, gate, risk, batch_size, generations"),
        ({"guide": {"adapt_every": -1}}, "search: adapt_every: expected 0 or more, got -1."),
        (
            {"warm_start": ["0-1-2-3"] * 99},
            "expected a warm start of at most one population (10), got 99 architectures",
        ),
        ({"warm_start": "0-1-2-3"}, "search: expected a list of warm_start, got '0-1-2-3'. Put it in a list."),
        (
            {"engine": "pymoo", "sampler": "smsemoa", "goals": ["max:accuracy@toy"]},
            "expected two or more goals with smsemoa, got one",
        ),
        ({"twins": "never"}, "expected twins to be one of once, apart, got 'never'"),
        ({"earlier_trials": [20, 60]}, "expected ascending earlier_trials below 60, got 20, 60"),
        ({"earlier_trials": [20, 10]}, "expected ascending earlier_trials below 60, got 20, 10"),
        ({"trails": 5}, "got unknown ['trails'], missing []"),
    ],
)
def test_config_errors_say_what_is_expected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        toy_config(**changes)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:se/cr@et@host:5432/studies", "postgresql://me@host:5432/studies"),
        ("postgresql://host/studies?user=me&password=secret&x=1", "postgresql://host/studies?user=me&password=***&x=1"),
        ("sqlite:///a:b/study@home.db", "sqlite:///a:b/study@home.db"),
    ],
)
def test_passwords_are_not_written_down(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_twins_are_searched_apart_where_their_costs_differ() -> None:
    nasbench201, nasbench101 = get_space("nasbench201"), get_space("nasbench101")
    assert twins_of(nasbench201, ["accuracy@cifar10", "latency_ms@raspi4"]) == "apart"
    assert twins_of(nasbench201, ["accuracy@cifar10", "valid_accuracy@cifar10"]) == "once"
    assert twins_of(nasbench101, ["accuracy@cifar10", "latency_ms@raspi4"]) == "once"


def test_settings_in_place_of_a_guide_are_refused() -> None:
    with pytest.raises(ValueError, match=r"search: expected a guide, got {'gate': False}\. Make it with"):
        SearchConfig("toy", ["min:params"], 5, guide={"gate": False})  # type: ignore[arg-type]


def test_a_storage_may_be_a_path() -> None:
    config = toy_config(storage=Path("studies") / "journal.log")
    assert config == toy_config(storage=str(Path("studies") / "journal.log"))
    assert config.to_dict()["storage"] == config.storage


def test_goals_and_constraints_may_be_spelled() -> None:
    config = SearchConfig("nasbench201", ("max:accuracy@cifar10",), 5, constraints=["soft:latency_ms@pixel3<=10"])  # type: ignore
    assert config.goals == (Goal(True, "accuracy@cifar10"),)
    assert config.objectives == ("accuracy@cifar10", "latency_ms@pixel3")
    for wrong in ({"goals": "max:accuracy@cifar10"}, {"goals": ["max:a"], "constraints": "latency_ms@pixel3<=10"}):
        with pytest.raises(
            ValueError, match=r"search: expected a list of (goals|constraints), got '.*'\. Put it in a list"
        ):
            SearchConfig("nasbench201", trials=5, **wrong)  # type: ignore[arg-type]
