"""The t5gemma backbone, on a tiny random one: loaded, trained, saved, loaded again, asked."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.t5gemma import T5GemmaTextEncoder, load_t5gemma
from nasrlm.predictor import Predictor
from nasrlm.text.tokenizer import PADDING_ID
from nasrlm.training.run import TrainingRun
from nasrlm.training.train import train
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import CODE, OBJECTIVES, SIZES, layer_examples

TEXTS = ["Conv3\nPool\n", "Skip\n"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.nasrlm.model.t5gemmas import save_tiny_t5gemma

    folder = tmp_path_factory.mktemp("hub") / "t5gemma"
    save_tiny_t5gemma(folder)
    return folder


def sizes(folder: Path, **changes: object) -> ModelConfig:
    return replace(SIZES, backbone=str(folder), max_text_tokens=64, **changes)


def test_states_are_those_of_transformers(published: Path) -> None:
    from transformers import AutoTokenizer, T5GemmaForConditionalGeneration

    loaded = load_t5gemma(sizes(published))
    model = RegressionLanguageModel(loaded.config, 0, 2, CODE).eval()
    assert isinstance(model.encoder, T5GemmaTextEncoder)
    loaded.fill(model.encoder)
    batch = AutoTokenizer.from_pretrained(published)(TEXTS, padding=True, return_tensors="pt")
    reference = T5GemmaForConditionalGeneration.from_pretrained(published).eval().model.encoder
    with torch.inference_mode():
        expected = reference(**{key: batch[key] for key in ("input_ids", "attention_mask")}).last_hidden_state
        states, mask, *_ = model.encoder(batch["input_ids"])
        there = batch["attention_mask"].bool()
        torch.testing.assert_close(states[there], model.encoder.projection(expected)[there])
    assert torch.equal(mask[:, 0, 0], there)
    token_ids = [ids[kept].tolist() for ids, kept in zip(batch["input_ids"], there, strict=True)]
    assert loaded.tokenizer.to_ids(TEXTS) == token_ids
    assert PADDING_ID not in token_ids[0]


@pytest.mark.parametrize("changes", [{}, {"freeze_backbone": True}, {"lora_rank": 2}, {"head": "mse"}])
def test_it_trains_and_comes_back(published: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    rows = layer_examples(40)
    chosen = config(tmp_path, model=sizes(published, **changes), epochs=1, backbone_learning_rate=1e-2)
    before = TrainingRun(chosen, rows).model.state_dict()
    result = train(chosen, rows, progress=False)
    assert result.steps == 2
    moved = {name for name, x in result.checkpoint.model.state_dict().items() if not torch.equal(x, before[name])}
    assert "decoder.objectives.weight" in moved
    assert "encoder.projection.weight" in moved
    frozen, adapted = ("freeze_backbone" in changes or "lora_rank" in changes), "lora_rank" in changes
    assert any(name.endswith("q_proj.weight") for name in moved) == (not frozen)
    assert any(name.endswith("q_proj.up") for name in moved) == adapted
    loaded = Predictor.from_pretrained(tmp_path / "checkpoint")
    np.testing.assert_array_equal(loaded.predict(TEXTS).values, Predictor(result.checkpoint).predict(TEXTS).values)


def test_a_checkpoint_of_it_can_be_fine_tuned(published: Path, tmp_path: Path) -> None:
    rows = layer_examples(40)
    first = config(tmp_path / "first", model=sizes(published, lora_rank=2), epochs=1)
    given = train(first, rows, progress=False).checkpoint.model.state_dict()
    initial = tmp_path / "first" / "checkpoint"
    second = config(tmp_path / "second", initial_checkpoint=initial, model=ModelConfig(), objectives=OBJECTIVES)
    start = TrainingRun(second, rows).model
    assert start.config.lora_rank == 2
    for name, weights in start.state_dict().items():
        torch.testing.assert_close(weights, given[name], rtol=0, atol=0)
    with pytest.raises(
        ValueError, match=r"only_encoder: expected an initial_checkpoint of a compact model, got .*t5gemma"
    ):
        TrainingRun(second.model_copy(update={"only_encoder": True, "out": tmp_path / "third"}), rows)


def test_a_fine_tuned_backbone_is_frozen_where_the_config_says_so(published: Path, tmp_path: Path) -> None:
    rows = layer_examples(40)
    train(config(tmp_path / "first", model=sizes(published), epochs=1), rows, progress=False)
    initial = tmp_path / "first" / "checkpoint"
    frozen = config(tmp_path / "second", initial_checkpoint=initial, model=sizes(published, freeze_backbone=True))
    learned = {name for name, p in TrainingRun(frozen, rows).model.named_parameters() if p.requires_grad}
    assert learned
    assert not any(name.startswith("encoder.backbone.") for name in learned)
    for changes, message in (
        ({"lora_rank": 2}, r"model\.lora_rank: expected 0, as in .*, or no value, got 2"),
        ({"backbone": "another"}, r"model\.backbone: expected .*t5gemma, as in .*, or no value, got another"),
    ):
        chosen = config(tmp_path / "third", initial_checkpoint=initial, model=replace(sizes(published), **changes))
        with pytest.raises(ValueError, match=message):
            TrainingRun(chosen, rows)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer": "code"}, "tokenizer: expected no value with .*t5gemma, got code"),
        ({"vocabulary_size": 260}, r"vocabulary_size: expected \d+, as in .*t5gemma, or more, or no value, got 260"),
    ],
)
def test_tokens_other_than_its_own_are_refused(published: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingRun(config(Path("unused"), model=sizes(published), **changes), layer_examples(40))


def test_a_checkpoint_does_not_need_the_backbone_folder(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "moved"
    shutil.copytree(published, copy)
    train(config(tmp_path / "run", model=sizes(copy), epochs=1), layer_examples(40), progress=False)
    shutil.rmtree(copy)
    assert Checkpoint.from_pretrained(tmp_path / "run" / "checkpoint").model.config.backbone == str(copy)


def test_loading_prints_nothing(published: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_t5gemma(sizes(published))
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_one_that_lacks_weights_is_refused(published: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(published, tmp_path / "part")
    weights = load_file(folder / "model.safetensors")
    del weights["model.encoder.layers.0.self_attn.q_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"one without the weights encoder\.layers\.0\.self_attn\.q_proj\.weight"):
        load_t5gemma(sizes(folder))


def test_what_is_no_t5gemma_is_refused(published: Path, tmp_path: Path) -> None:
    from tests.nasrlm.model.t5gemmas import save_tiny_t5gemma

    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "bert"}')
    save_tiny_t5gemma(tmp_path / "padded", padding="<eos>")
    for model, message in (
        (sizes(tmp_path / "bert"), r"model\.backbone: expected compact, or a T5Gemma .*, got .*bert' \(a bert\)"),
        (sizes(tmp_path / "none"), r"model\.backbone: expected compact, or a T5Gemma .*, got .*none'"),
        (
            replace(sizes(published), max_text_tokens=512),
            r"model\.max_text_tokens: expected at most 256, the limit of .*512",
        ),
        (sizes(tmp_path / "padded"), r"padded: expected a tokenizer that pads with id 0 .*, got padding 1"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            train(config(tmp_path, model=model), layer_examples(40), progress=False)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("wrong", [{"lora_rank": 2}, {"freeze_backbone": True}, {"lora_rank": -1, "backbone": "x"}])
def test_only_a_backbone_can_be_frozen_or_adapted(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="ModelConfig: expected lora_rank of 0 or more, and a backbone to freeze"):
        replace(SIZES, **wrong)
