"""A warning names the line of the user's code that led to it."""

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nasrlm
from nasrlm.callers import warn_caller
from nasrlm.predictor import Predictor
from tests.nasrlm.scenes import network_checkpoint

NOTATION, MISSPELLED = "|none~0|", ["nasbnech201"]


def predict(_: Path) -> None:
    Predictor(network_checkpoint()).predict([NOTATION])


def predict_by_space(_: Path) -> None:
    nasrlm.Predictor.from_pretrained().predict([NOTATION], ["accuracy@cifar10"], spaces=MISSPELLED)


def constrain(_: Path) -> None:
    nasrlm.SearchConfig("nasbench201", ["min:params@onnx"], 4, constraints=["accuracy@cifar10>=0.9"])


def adapt(folder: Path) -> None:
    space = nasrlm.get_space("nasbench201")
    names = [space.format(space.sample(np.random.default_rng(seed))) for seed in range(9)]
    pd.DataFrame({"space": space.name, "architecture": names, "accuracy@x": 90.0}).to_csv(folder / "t.csv", index=False)
    nasrlm.adapt_to_tables(network_checkpoint(), nasrlm.AdaptConfig([folder / "t.csv"], ["accuracy@x"], 4, pool=9))


@pytest.mark.parametrize("call", [predict, predict_by_space, constrain, adapt])
def test_a_warning_names_the_users_line(call: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="expected") as told:
        call(tmp_path)
    lines, first = inspect.getsourcelines(call)
    assert {(warning.filename, warning.lineno) for warning in told} == {(__file__, first + len(lines) - 1)}


def test_the_command_line_is_a_caller() -> None:
    place = {"__name__": "nasrlm.cli.verbs.predict", "warn": warn_caller}
    with pytest.warns(UserWarning, match="odd") as told:
        exec(compile("warn('odd')", "verbs/predict.py", "exec"), place)
    assert told[0].filename == "verbs/predict.py"
