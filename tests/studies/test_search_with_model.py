"""Searches from Python, in one call: with real evaluations, and on predictions alone."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nasrlm
from studies.evaluators import TableEvaluator
from studies.search_with_model import reads_all_graphs
from studies.surrogates.process_adapter import every_network
from studies.surrogates.surrogate import Surrogate
from tests.nasrlm.scenes import network_checkpoint

GOALS = ["max:accuracy@cifar10", "min:latency_ms@raspi4"]

pytestmark = pytest.mark.usefixtures("without_figures")


def test_a_function_is_asked_for_what_the_model_chooses(tmp_path: Path) -> None:
    asked: list[str] = []

    def evaluate(notation: str) -> dict[str, float]:
        asked.append(notation)
        return {"accuracy@cifar10": float(notation.count("conv")), "latency_ms@raspi4": 1.0 + notation.count("3x3")}

    guide = nasrlm.optuna.Guide(batch_size=3, generations=2)
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=7, population_size=8, guide=guide)
    predictor = nasrlm.Predictor(network_checkpoint())
    out = str(tmp_path / "study")
    result = nasrlm.search_with_model(config, "nasbench201", evaluate, out, predictor=predictor)
    assert result.evaluations == len(asked) == len(set(asked)) == 7
    history = pd.read_parquet(f"{out}/history.parquet")
    assert history["architecture"][history["status"] == "evaluated"].tolist() == asked
    assert (tmp_path / "study" / "journal.log").exists()
    recorded = json.loads((tmp_path / "study" / "study.json").read_text())["config"]
    assert (recorded["evaluator"], recorded["checkpoint_sha256"]) == ("function", predictor.checkpoint.sha256)
    again = nasrlm.search_with_model(config, "nasbench201", evaluate, out, predictor=predictor, resume=True)
    assert (again.front, len(asked)) == (result.front, 7)


def test_its_folder_is_a_path() -> None:
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=2)
    with pytest.raises(ValueError, match=r"^search: expected the path of a folder, got None\."):
        nasrlm.search_with_model(config, "nasbench201", dict, None)  # type: ignore[arg-type]


def test_without_a_guide_it_has_the_usual_one(tmp_path: Path) -> None:
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=2, population_size=4)
    predictor = nasrlm.Predictor(network_checkpoint())
    nasrlm.search_with_model(
        config, "nasbench201", lambda _: dict.fromkeys(config.objectives, 1.0), tmp_path, predictor=predictor
    )
    assert json.loads((tmp_path / "study.json").read_text())["config"]["guide"] == nasrlm.optuna.Guide().to_dict()


def test_its_model_is_that_of_the_space(tmp_path: Path) -> None:
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=2, population_size=4)
    by_space = {"nasbench201": {GOALS[1].removeprefix("min:"): [0.5] * 99}}
    predictor = nasrlm.Predictor(replace(network_checkpoint(), calibration_by_space=by_space))
    of_space = predictor.of_space("nasbench201").checkpoint.sha256
    assert of_space != predictor.checkpoint.sha256
    nasrlm.search_with_model(
        config, "nasbench201", lambda _: dict.fromkeys(config.objectives, 1.0), tmp_path, predictor=predictor
    )
    assert json.loads((tmp_path / "study.json").read_text())["config"]["checkpoint_sha256"] == of_space


def test_unknown_costs_of_few_networks_with_lost_operations_are_learned_from_graphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, rng = nasrlm.get_space("nasbench201"), np.random.default_rng(0)
    notations = sorted({space.format(space.sample(rng)) for _ in range(30)})
    costs = [1.0 + notation.count("conv_3x3") for notation in notations]
    table = pd.DataFrame({"architecture": notations, "accuracy@cifar10": 90.0, "latency_ms@mine": costs})
    goals = ["max:accuracy@cifar10", "min:latency_ms@mine"]
    config = nasrlm.SearchConfig("nasbench201", goals, trials=20, population_size=6, twins="apart")
    truth = TableEvaluator(config.searched(space), table, objectives=config.objectives)
    read: list[int] = []

    def counted(*given: Any, **options: Any) -> Any:
        networks = every_network(*given, **options)
        read.append(len(networks[0]))
        return networks

    monkeypatch.setattr("studies.search_with_model.every_network", counted)
    predictor = nasrlm.Predictor(network_checkpoint())
    result = nasrlm.search_with_model(config, space, truth, tmp_path, predictor=predictor)
    assert (result.evaluations, read) == (20, [len(notations)])


@pytest.mark.parametrize(
    ("space", "exhaustive", "trials", "known", "expected"),
    [
        ("nasbench201", False, 20, None, True),
        ("nasbench201", False, 19, None, False),
        ("nasbench201", False, 20, 20_001, False),
        ("nasbench_macro", False, 20, None, False),
        ("nasbench_macro", True, 19, None, True),
    ],
)
def test_graphs_of_all_networks_are_read_where_texts_do_not_tell_costs(
    space: str, exhaustive: bool, trials: int, known: int | None, expected: bool
) -> None:
    config, guide = nasrlm.SearchConfig(space, GOALS, trials=trials), nasrlm.optuna.Guide(exhaustive=exhaustive)
    networks = None if known is None else [None] * known
    assert reads_all_graphs(config, guide, nasrlm.get_space(space), networks) == expected


def test_a_predictor_answers_as_the_surrogate_of_its_space_does(tmp_path: Path) -> None:
    predictor, space = nasrlm.Predictor(network_checkpoint()), nasrlm.get_space("nasbench201")
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=10, population_size=5)
    found = nasrlm.search(config, "nasbench201", predictor, tmp_path / "predictor")
    surrogate = Surrogate(
        space,
        predictor.of_space(space),
        objectives=config.objectives,
        to_text=partial(nasrlm.to_measured_text, space),
    )
    assert found.front == nasrlm.search(config, space, surrogate, tmp_path / "surrogate").front
    recorded = json.loads((tmp_path / "predictor" / "study.json").read_text())["config"]
    assert (recorded["evaluator"], recorded["checkpoint_sha256"]) == ("surrogate", predictor.checkpoint.sha256)


def test_a_study_on_predictions_is_resumed_by_either_predictor(tmp_path: Path) -> None:
    by_space = {"nasbench201": {GOALS[1].removeprefix("min:"): [0.5] * 99}}
    of_all = nasrlm.Predictor(replace(network_checkpoint(), calibration_by_space=by_space))
    of_space = of_all.of_space("nasbench201")
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=10, population_size=5)
    begun = nasrlm.search(config, "nasbench201", of_all, tmp_path)
    assert nasrlm.search(config, "nasbench201", of_space, tmp_path, resume=True).front == begun.front
    recorded = json.loads((tmp_path / "study.json").read_text())["config"]
    assert recorded["checkpoint_sha256"] == of_space.checkpoint.sha256 != of_all.checkpoint.sha256


def test_a_checkpoint_in_place_of_its_predictor_is_refused(tmp_path: Path) -> None:
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=2, population_size=2)
    with pytest.raises(ValueError, match=r"search: expected an evaluator, .* got Checkpoint\("):
        nasrlm.search(config, "nasbench201", network_checkpoint(), tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"predictor": "checkpoint"}, r"search: expected a Predictor, got str\."),
        ({"predictor": network_checkpoint()}, r"search: expected a Predictor, got Checkpoint\."),
        ({"to_text": "measured"}, r"to_text: expected a function of an architecture, got 'measured'\."),
        ({"config": {"trials": 2}}, r"search: expected a SearchConfig, got dict\."),
        ({"resume": "no"}, r"search: resume: expected True or False, got 'no'\."),
    ],
)
def test_arguments_of_other_kinds_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    config = nasrlm.SearchConfig("nasbench201", GOALS, trials=2, population_size=2)
    predictor = nasrlm.Predictor(network_checkpoint())
    arguments = {"config": config, "predictor": predictor, **given}
    with pytest.raises(ValueError, match=message):
        nasrlm.search_with_model(space="nasbench201", evaluator=dict, out=tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()
