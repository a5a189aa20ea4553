"""Runs begin with the weights and tokens that they are given."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.metrics import kendall_tau
from nasrlm.predictor import Predictor
from nasrlm.training.initial_model import check_origin, initial_model
from nasrlm.training.run import TrainingRun
from nasrlm.training.train import train
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import OBJECTIVES, SIZES, layer_examples


def test_what_is_saved_may_lie_between_the_initial_weights_and_the_learned(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path
) -> None:
    def weights(share: float) -> dict[str, torch.Tensor]:
        chosen = config(tmp_path, initial_checkpoint=checkpoint_folder, initial_share=share)  # one run, calibrated anew
        return train(chosen, layer_examples(40), progress=False).checkpoint.model.state_dict()

    initial, learned = checkpoint.model.state_dict(), weights(0.0)
    for name, between in weights(0.25).items():
        torch.testing.assert_close(between, 0.25 * initial[name] + 0.75 * learned[name])
    assert any((initial[name] != x).any() for name, x in learned.items())


def test_the_ranks_that_are_told_are_those_of_what_is_saved(checkpoint_folder: Path, tmp_path: Path) -> None:
    rows = layer_examples()
    untrained = {"initial_checkpoint": checkpoint_folder, "epochs": 6, "initial_share": 1.0}
    result = train(config(tmp_path, **untrained), rows)
    valid = rows.split("valid")
    uncalibrated = replace(result.checkpoint, calibration={})
    medians = Predictor(uncalibrated).predict(valid.texts, OBJECTIVES).median
    assert (
        result.valid_tau
        == pytest.approx(kendall_tau(medians, valid.labels).mean())
        == result.checkpoint.card["valid_tau"]
    )


def test_fine_tuning_starts_from_the_weights_it_is_given(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    new = Examples(rows.texts, (OBJECTIVES[1], "energy_mj@new"), rows.labels, rows.splits, rows.spaces)
    run = TrainingRun(config(Path("unused"), initial_checkpoint=checkpoint_folder), new)
    given, start = checkpoint.model.state_dict(), run.model.state_dict()
    assert run.model.code == checkpoint.model.code
    torch.testing.assert_close(start.pop("decoder.objectives.weight")[0], given["decoder.objectives.weight"][1])
    for name, weights in start.items():
        torch.testing.assert_close(weights, given[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_digits": 6}, "num_digits: expected 2, as in .*, or no value, got 6"),
        ({"max_exponent": 5}, "max_exponent: expected 1, as"),
        ({"model": replace(SIZES, max_text_tokens=256)}, r"model\.max_text_tokens: expected 512 or more, as"),
        (
            {"model": replace(SIZES, max_text_tokens=1024), "only_encoder": True},
            r"model\.max_text_tokens: expected 512, as in .*, or no value, got 1024",
        ),
        ({"model": replace(SIZES, head="mse")}, r"model\.head: expected digits, as in .*, or no value, got mse"),
        ({"tokenizer": "code"}, "tokenizer: expected onnx, as in .*, or no value, got code"),
        ({"tokenizer": "code", "extend_tokenizer": True}, "tokenizer: expected onnx, as in .*, or no value, got code"),
        (
            {"vocabulary_size": 300, "extend_tokenizer": True},
            r"vocabulary_size: expected more than the \d+ tokens of the tokenizer to extend, got 300",
        ),
        ({"vocabulary_size": 300}, r"vocabulary_size: expected \d+, as in .*, or more, or no value, got 300"),
    ],
)
def test_sizes_that_the_checkpoint_has_otherwise_are_refused(
    checkpoint_folder: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingRun(config(Path("unused"), initial_checkpoint=checkpoint_folder, **changes), layer_examples(40))
    with pytest.raises(ValueError, match=message):
        check_origin(config(Path("unused"), initial_checkpoint=checkpoint_folder, **changes))


def test_a_longer_context_is_learned_from_the_same_weights(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path
) -> None:
    rows = layer_examples(40)
    long = rows.texts[0] * (1 + 512 // len(checkpoint.tokenizer.to_ids(rows.texts[:1])[0]))
    longer = Examples([long, *rows.texts[1:]], rows.objectives, rows.labels, rows.splits, rows.spaces)
    with pytest.raises(ValueError, match="512"):
        TrainingRun(config(tmp_path / "short", initial_checkpoint=checkpoint_folder), longer)
    grown = config(tmp_path, initial_checkpoint=checkpoint_folder, model=replace(SIZES, max_text_tokens=4096))
    run = TrainingRun(grown, longer)
    texts = rows.texts[1:4]
    expected = Predictor(checkpoint).predict(texts, [OBJECTIVES[0]]).values
    torch.testing.assert_close(run.predictor.predict(texts, [OBJECTIVES[0]]).values, expected)
    learned = run.finish().checkpoint
    assert learned.model.config.max_text_tokens == 4096
    read = Predictor(Checkpoint.from_pretrained(tmp_path / "checkpoint")).predict([long], [OBJECTIVES[0]])
    assert np.isfinite(read.median).all()


def test_an_extended_tokenizer_keeps_what_tokens_mean(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    other = Examples([f"{text}Relu\nDense\n" for text in rows.texts], OBJECTIVES, rows.labels, rows.splits, rows.spaces)
    size = checkpoint.tokenizer.vocabulary_size + 20
    chosen = config(Path("unused"), initial_checkpoint=checkpoint_folder, extend_tokenizer=True, vocabulary_size=size)
    run = TrainingRun(chosen, other)
    given, start = (model.state_dict()["encoder.embedding.weight"] for model in (checkpoint.model, run.model))
    old, new = checkpoint.tokenizer.tokens, run.predictor.checkpoint.tokenizer.tokens
    assert new[: len(old)] == old
    torch.testing.assert_close(start[: len(old)], given, rtol=0, atol=0)
    spelled = given[checkpoint.tokenizer.to_ids(["Dense\n"])[0]].mean(dim=0)
    torch.testing.assert_close(start[new.index("DenseĊ")], spelled)


def test_a_tokenizer_extended_for_a_space_reads_the_others_as_before(
    checkpoint: Checkpoint, checkpoint_folder: Path
) -> None:
    rows = layer_examples(40)
    spaces = np.array(["new", "known"] * 20)
    texts = [f"{text}Dense\n" if space == "new" else text for text, space in zip(rows.texts, spaces, strict=True)]
    examples = Examples(texts, OBJECTIVES, rows.labels, rows.splits, spaces)
    size = checkpoint.tokenizer.vocabulary_size + 20
    chosen = config(
        Path("unused"), initial_checkpoint=checkpoint_folder, extend_tokenizer=("new",), vocabulary_size=size
    )
    tokenizer = TrainingRun(chosen, examples).predictor.checkpoint.tokenizer
    train_rows = examples.split("train")
    for text, space in zip(train_rows.texts, train_rows.spaces, strict=True):
        (before,), (after,) = checkpoint.tokenizer.to_ids([text]), tokenizer.to_ids([text])
        assert after == before if space == "known" else len(after) < len(before)
    with pytest.raises(ValueError, match=r"extend_tokenizer: expected spaces with train rows, got other"):
        TrainingRun(chosen.model_copy(update={"extend_tokenizer": ("new", "other")}), examples)


def test_random_weights_can_read_the_tokens_of_a_checkpoint(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    rows = layer_examples(40)
    run = TrainingRun(config(Path("unused"), initial_tokenizer=checkpoint_folder), rows)
    assert run.predictor.checkpoint.tokenizer.to_json() == checkpoint.tokenizer.to_json()
    given, start = (model.state_dict()["encoder.embedding.weight"] for model in (checkpoint.model, run.model))
    assert given.shape == start.shape
    assert not torch.allclose(given, start)
    with pytest.raises(ValueError, match=r"tokenizer: expected onnx, as in .*, or no value, got chains"):
        TrainingRun(config(Path("unused"), initial_tokenizer=checkpoint_folder, tokenizer="chains"), rows)


def test_a_run_that_goes_on_keeps_its_tokens_though_their_folder_is_gone(checkpoint: Checkpoint) -> None:
    chosen = config(Path("unused"), initial_tokenizer=Path("absent"))
    _, tokenizer = initial_model(chosen, layer_examples(40), checkpoint.tokenizer)
    assert tokenizer.to_json() == checkpoint.tokenizer.to_json()


def test_fine_tuning_needs_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere: expected a checkpoint folder"):
        train(config(tmp_path, initial_checkpoint=tmp_path / "nowhere"), layer_examples(40), progress=False)
