"""Long texts are an error, or cut as the config says, and counted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.model.config import ModelConfig, Truncation
from nasrlm.predictor import Predictor
from nasrlm.text.truncation import CutTextWarning, TokenLimit
from nasrlm.training.train import train
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import SIZES, layer_examples


@pytest.mark.parametrize(
    ("keep", "kept"), [("head", [0, 1, 2, 3, 4]), ("tail", [4, 5, 6, 7, 8]), ("head_and_tail", [0, 1, 2, 7, 8])]
)
def test_what_is_kept(keep: Truncation, kept: list[int]) -> None:
    with pytest.warns(UserWarning, match=r"text: 2 of 4 are longer than 5 tokens; only .* is read"):
        cut = TokenLimit(5, keep).cut([list(range(9)), [1, 2], list(range(5)), list(range(9))])
    assert cut == [kept, [1, 2], [0, 1, 2, 3, 4], kept]


def test_texts_that_fit_are_not_warned_of() -> None:
    assert TokenLimit(2, "head").cut([[1, 2], [3]]) == [[1, 2], [3]]


def test_a_model_has_a_limit_only_where_it_cuts() -> None:
    assert replace(SIZES, truncation="error").token_limit is None
    assert replace(SIZES, max_text_tokens=7, truncation="tail").token_limit == TokenLimit(7, "tail")


def test_a_model_that_cuts_says_how_many_texts(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {**vars(SIZES), "max_text_tokens": 3, "truncation": "tail"}
    examples = layer_examples(80)
    with pytest.warns(CutTextWarning) as told:
        result = train(config(tmp_path, model=ModelConfig(**sizes), vocabulary_size=300), examples, progress=False)
    assert len(told) == 2  # of valid rows and of train rows, not again at every evaluation
    long = {split: sum(text.count("\n") > 3 for text in examples.split(split).texts) for split in ("train", "valid")}
    assert result.checkpoint.card["texts_cut"] == long
    predictor = Predictor(Checkpoint.from_pretrained(tmp_path / "checkpoint"))
    with pytest.warns(UserWarning, match="text: 1 of 2 are longer than 3 tokens; only tail is read"):
        first, second = predictor.predict(["Skip\n" * 9 + "Conv3\n" * 3, "Conv3\n" * 3]).values
    assert first.tolist() == second.tolist()
