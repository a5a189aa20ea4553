"""Each sampler of Optuna's is made by its name."""

import pytest
from optuna.samplers import RandomSampler

from studies import config
from studies.config import SAMPLERS
from studies.optuna_samplers import _MAKERS, DistinctSampler
from studies.problem import Problem
from tests.studies.scenes import SPACE, ToyEvaluator, toy_config


def sampler_named(name: str) -> object:
    return DistinctSampler(Problem(toy_config(sampler=name), SPACE, ToyEvaluator())).sampler


@pytest.mark.filterwarnings("ignore:Argument ``deterministic_objective``")
def test_only_random_is_random() -> None:
    assert tuple(_MAKERS) == SAMPLERS["optuna"]
    made = {name: sampler_named(name) for name in SAMPLERS["optuna"]}
    assert [name for name, sampler in made.items() if isinstance(sampler, RandomSampler)] == ["random"]
    assert len({type(sampler) for sampler in made.values()}) == len(made)


def test_a_name_without_a_sampler_is_no_random_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "SAMPLERS", {"optuna": ("cma",)})
    with pytest.raises(KeyError, match="cma"):
        sampler_named("cma")
