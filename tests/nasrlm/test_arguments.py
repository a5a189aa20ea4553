"""Arguments of a predictor that would be taken for something else."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nasrlm.adaptation.refine import refine
from nasrlm.arguments import checked_names, known_values
from nasrlm.examples import Examples
from nasrlm.predictor import Predictor
from nasrlm.reader import checked_texts
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from tests.nasrlm.scenes import OBJECTIVES, network_checkpoint

UNORDERED = [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 2}, pd.DataFrame({"a": ["x"]}), np.array([["a", "b"]]), b"ab"]


@pytest.mark.parametrize("given", UNORDERED, ids=lambda given: type(given).__name__)
def test_what_has_no_order_is_no_list(given: Any) -> None:
    with pytest.raises(ValueError, match=r"texts: expected a list of texts, got \w+\."):
        checked_texts(given)
    with pytest.raises(ValueError, match="objectives: expected a list of names, got "):
        checked_names(given)
    with pytest.raises(ValueError, match=r"known: expected one value per text \(2\) for params, got "):
        known_values({"params": given}, ["a", "b"], ["params"])


def test_what_has_an_order_is_a_list() -> None:
    names = {"a": 1, "b": 2}
    for given in (
        ("a", "b"),
        iter("ab"),
        names.keys(),
        np.array(["a", "b"]),
        pd.Series(["a", "b"]),
        pd.Index(["a", "b"]),
    ):
        assert checked_names(given) == ("a", "b")
    assert checked_texts(names.keys()) == ["a", "b"]


def test_a_checkpoint_is_saved_to_a_path() -> None:
    with pytest.raises(ValueError, match=r"^checkpoint: expected the path of a folder, got None\."):
        network_checkpoint().save_pretrained(None)  # type: ignore[arg-type]


def test_numbers_of_a_predictor_are_checked() -> None:
    checkpoint = network_checkpoint()
    for wrong in ("1 GB", None, -1, float("nan")):
        with pytest.raises(ValueError, match=r"memory_bytes: expected 0 or more, got "):
            Predictor(checkpoint, memory_bytes=wrong)  # type: ignore[arg-type]
    predictor = Predictor(checkpoint, memory_bytes=np.int64(1000))  # type: ignore[arg-type]
    for wrong in ("1", None, 0.0, float("inf")):
        with pytest.raises(ValueError, match=r"temperature: expected 0\.0001 or more, got "):
            predictor.joint_samples(["Pool\n"], OBJECTIVES, 2, temperature=wrong)  # type: ignore[arg-type]


def test_tables_and_settings_in_place_of_objects_are_refused(tmp_path: Path) -> None:
    checkpoint, table = network_checkpoint(), pd.DataFrame({"text": ["Pool\n"]})
    config = TrainConfig(out=tmp_path / "run")
    with pytest.raises(ValueError, match=r"train: expected a TrainConfig, got dict\."):
        train({"out": "run"}, table)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"train: expected an Examples, got DataFrame\."):
        train(config, table)  # type: ignore[arg-type]
    assert not config.out.exists()
    with pytest.raises(ValueError, match=r"refine: expected an Examples, got DataFrame\."):
        refine(checkpoint, "nasbench201", table)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"refine: expected a Checkpoint, got 'released'\."):
        refine("released", "nasbench201", table)  # type: ignore[arg-type]
    examples = Examples(["a"], ("params",), np.zeros((1, 1)), np.array(["train"]), np.array(["text"]))
    with pytest.raises(ValueError, match=r"space: expected a space or its name, got None\."):
        refine(checkpoint, None, examples)  # type: ignore[arg-type]
