"""ONNX Runtime answers as torch does; what it cannot run is left to torch, or refused."""

import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.engines import onnx_engine
from nasrlm.engines.engine import Engine, TorchEngine, make_engine
from nasrlm.engines.names import EngineName
from nasrlm.engines.onnx_engine import OnnxEngine
from nasrlm.metrics import kendall_tau
from nasrlm.model.config import ModelConfig
from nasrlm.model.decoding import quantiles
from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.predictor import MEMORY_BYTES, Predictor
from nasrlm.reader import pad
from nasrlm.text.tokenizer import TextTokenizer
from tests.nasrlm.scenes import CODE, OBJECTIVES, SIZES, tiny_model

TEXT_IDS = pad([[3, 7, 7, 1, 12, 4, 4, 9], [5], [2, 2, 6], [19] * 8])
BOTH = torch.tensor([1, 0])
LEVELS = torch.linspace(0.001, 0.999, 41, dtype=torch.float64).expand(2, -1)


def larger_model() -> RegressionLanguageModel:
    """More layers, more heads, other digits."""
    torch.manual_seed(0)
    sizes = ModelConfig(width=24, num_heads=3, num_encoder_layers=3, num_decoder_layers=2, hidden=40, max_text_tokens=9)
    model = RegressionLanguageModel(sizes, 20, 3, NumberCode(num_digits=3)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def encoded(engine: Engine, text_ids: Tensor = TEXT_IDS) -> Encoded:
    return Encoded(engine.encode(text_ids), (text_ids != 0)[:, None, None, :], text_ids)


@pytest.mark.parametrize("model", [tiny_model(0), tiny_model(1), larger_model()], ids=["tiny", "other", "larger"])
def test_onnx_runtime_gives_the_quantiles_of_torch(model: RegressionLanguageModel) -> None:
    expected = quantiles(model, encoded(TorchEngine(model)), BOTH, LEVELS)
    engine = OnnxEngine(model)
    found = engine.quantiles(encoded(engine), BOTH, LEVELS)
    assert torch.isclose(found, expected, rtol=1e-3, atol=1e-3).double().mean() > 0.99
    torch.testing.assert_close(found, expected, rtol=5e-3, atol=1e-3)  # 32 bits, where little probability is
    assert (expected < 0).any()
    assert (expected == 0).any()
    assert (expected > 0).any()


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_joined_tokens_are_read_alike_alone_and_in_batches(engine: EngineName) -> None:
    torch.manual_seed(0)
    tokenizer = TextTokenizer.train(TEXTS, 300)
    model = RegressionLanguageModel(
        replace(SIZES, num_encoder_layers=2, tokens_per_state=3), tokenizer.vocabulary_size, 2, CODE
    ).eval()
    checkpoint = Checkpoint(model, tokenizer, OBJECTIVES)
    assert make_engine(engine, model).encode(torch.ones(2, 7, dtype=torch.long)).shape == (2, 3, SIZES.width)
    alone = np.concatenate([Predictor(checkpoint).predict([text]).values for text in TEXTS])
    assert len(np.unique(alone[:, 0, 1])) > 1
    predictor = Predictor(checkpoint, engine, MEMORY_BYTES)
    for _ in range(2):  # read, then remembered
        np.testing.assert_allclose(predictor.predict(TEXTS).values, alone, rtol=5e-3, atol=1e-3)
    assert predictor.summaries(TEXTS).shape == (len(TEXTS), model.summary_width)


def test_threads_share_what_runs_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made = onnx_engine._session, list[bytes]()

    def slow(model: bytes) -> Any:
        made.append(model)
        time.sleep(0.05)
        return make(model)

    monkeypatch.setattr(onnx_engine, "_session", slow)
    engine = OnnxEngine(tiny_model())
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(engine.encode, [TEXT_IDS] * 8))
    assert len(made) == 1
    copied = deepcopy(engine)
    torch.testing.assert_close(copied.encode(TEXT_IDS), answers[0])
    assert len(made) == 2  # a copy has its own


def test_padding_is_not_read() -> None:
    engine = OnnxEngine(tiny_model())
    together = engine.encode(TEXT_IDS)
    torch.testing.assert_close(engine.encode(TEXT_IDS[2:3, :3])[0], together[2, :3], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("samples", [1, 50])
def test_levels_may_come_in_any_order_and_differ_by_text(samples: int) -> None:
    model = tiny_model()
    levels = torch.from_numpy(np.random.default_rng(0).uniform(size=(4, 2, samples)))
    expected = quantiles(model, encoded(TorchEngine(model)), BOTH, levels)
    engine = OnnxEngine(model)
    torch.testing.assert_close(engine.quantiles(encoded(engine), BOTH, levels), expected, rtol=1e-3, atol=1e-3)


def test_an_objective_may_be_asked_twice() -> None:
    engine = OnnxEngine(tiny_model())
    found = engine.quantiles(encoded(engine), torch.tensor([0, 0]), LEVELS)
    torch.testing.assert_close(found[:, 0], found[:, 1])


def test_eight_bits_rank_much_alike() -> None:
    model = larger_model()
    texts = torch.from_numpy(np.random.default_rng(0).integers(1, 20, (200, 9)))
    middle = torch.full((1, 1), 0.5, dtype=torch.float64)
    first = torch.tensor([0])
    engines = OnnxEngine(model), OnnxEngine(model, int8=True)
    exact, rounded = (engine.quantiles(encoded(engine, texts), first, middle)[:, 0].numpy() for engine in engines)
    assert kendall_tau(rounded, exact)[0] > 0.7  # of a random model; 0.98 to 0.99 of a trained one
    assert (rounded != exact).any()


def test_auto_is_onnx_runtime_where_that_can_run_the_model() -> None:
    assert isinstance(make_engine("auto", tiny_model()), OnnxEngine)
    assert isinstance(make_engine("torch", tiny_model()), TorchEngine)
    points = RegressionLanguageModel(ModelConfig(width=16, num_heads=2, head="mse"), 20, 2, NumberCode(15))
    assert isinstance(make_engine("auto", points), TorchEngine)
    with pytest.raises(ValueError, match=r"engine onnxruntime: expected a compact model .* got the head mse\. Use tor"):
        make_engine("onnxruntime", points)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match=r"engine: expected one of auto, torch, .* got 'tensorrt'"):
        make_engine("tensorrt", tiny_model())


TEXTS = ["Conv3\n" * length for length in (1, 9, 4, 20, 2)]


@pytest.fixture(scope="module")
def released(checkpoint_folder: Path) -> Predictor:
    return Predictor.from_pretrained(checkpoint_folder)


def test_predictors_of_both_engines_agree(released: Predictor, checkpoint: Checkpoint) -> None:
    plain = Predictor(checkpoint)
    ours, theirs = (predictor.predict(TEXTS).values for predictor in (released, plain))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    for name in ("sample", "joint_samples"):
        drawn = [getattr(predictor, name)(TEXTS, OBJECTIVES, 20, seed=3) for predictor in (released, plain)]
        close = np.isclose(*drawn, rtol=1e-3, atol=1e-3)
        assert close.mean() > 0.97  # a level beside the border of two digits may fall on either side
    labels = np.ones((5, 2))
    for name in ("log_probabilities", "cumulative_probabilities"):
        ours, theirs = (getattr(predictor, name)(TEXTS, OBJECTIVES, labels) for predictor in (released, plain))
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_batches_side_by_side_give_the_same(checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Predictor.from_pretrained(checkpoint_folder).predict(TEXTS * 3).values
    monkeypatch.setattr(OnnxEngine, "tokens_per_batch", 40)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    together = Predictor.from_pretrained(checkpoint_folder).predict(TEXTS * 3).values
    np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-3)


def test_weights_that_change_are_followed_by_torch_alone(checkpoint: Checkpoint) -> None:
    model = tiny_model(seed=0, vocabulary_size=checkpoint.tokenizer.vocabulary_size)
    changing = Checkpoint(model, checkpoint.tokenizer, OBJECTIVES)
    following, copied = Predictor(changing), Predictor(changing, "onnxruntime")
    before = following.predict(TEXTS).values, copied.predict(TEXTS).values
    with torch.no_grad():
        model.decoder.head.weight.mul_(-1)
    assert (following.predict(TEXTS).values != before[0]).any()
    np.testing.assert_array_equal(copied.predict(TEXTS).values, before[1])
