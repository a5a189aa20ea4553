"""On a GPU as on a CPU: losses, runs that go on, predictions, adapted objectives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from converters import to_measured_text
from converters.bulk import to_onnx_texts
from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.metrics import spearman_rho
from nasrlm.predictor import Predictor
from nasrlm.training.config import TrainConfig
from nasrlm.training.run import TrainingRun
from nasrlm.training.train import train
from spaces import get_space
from tests.nasrlm.runs import Killed, config, first_losses, killed_in
from tests.nasrlm.scenes import SIZES, layer_examples

DEVICE = "cuda"

pytestmark = pytest.mark.gpu


def kill(chosen: TrainConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends at its twentieth step; its state is saved."""
    with monkeypatch.context() as context:
        context.setattr(TrainingRun, "_train_step", killed_in("_train_step", 20))
        with pytest.raises(Killed):
            train(chosen, layer_examples())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"compile": True},
        {"accumulation_steps": 2},
        {"rank_loss_weight": 1.0},
        {"model": replace(SIZES, head="mse"), "smoothing_digits": 0.0},
        {"model": replace(SIZES, num_encoder_layers=2, tokens_per_state=3)},
    ],
)
def test_losses_are_those_of_a_cpu(tmp_path: Path, changes: dict[str, Any]) -> None:
    on_cpu = first_losses(tmp_path / "cpu", **changes | {"compile": False})
    assert first_losses(tmp_path / "gpu", device=DEVICE, **changes) == pytest.approx(on_cpu, rel=5e-3)


def test_a_run_in_16_bits_goes_on_and_answers_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = config(tmp_path, device=DEVICE, bf16=True, compile=True, save_every_seconds=0)
    kill(chosen, monkeypatch)
    result = train(chosen, layer_examples())
    assert result.checkpoint.model.decoder.positions.weight.device.type == torch.device(DEVICE).type
    texts = layer_examples(40, seed=1).texts
    there = Predictor(result.checkpoint).predict(texts)
    here = Predictor.from_pretrained(tmp_path / "checkpoint", engine="torch").predict(texts)
    np.testing.assert_allclose(there.values, here.values, rtol=0.05)


def test_what_began_there_ends_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill(config(tmp_path, device=DEVICE, save_every_seconds=0), monkeypatch)
    assert train(config(tmp_path), layer_examples()).steps > 20


def test_a_space_learns_an_encoder_there(checkpoint_folder: Path, tmp_path: Path) -> None:
    rows = replace(layer_examples(), spaces=np.full(240, "own"))
    chosen = config(tmp_path, initial_checkpoint=checkpoint_folder, encoder_steps={"own": 4}, device=DEVICE)
    learned = train(chosen, rows).checkpoint
    assert set(learned.encoders) == {"own"}
    there = Predictor(learned).of_space("own").predict(rows.texts[:8])
    here = Predictor.from_pretrained(tmp_path / "checkpoint", engine="torch").of_space("own").predict(rows.texts[:8])
    np.testing.assert_allclose(there.values, here.values, rtol=0.05)


@pytest.mark.parametrize("name", ["nasbench201", "darts"])
def test_the_released_checkpoint_answers_alike(name: str) -> None:
    space, rng = get_space(name), np.random.default_rng(0)
    texts = [to_measured_text(space, space.sample(rng)) for _ in range(12)]
    there, here = (Predictor.from_pretrained(device=where, engine="torch").of_space(name) for where in (DEVICE, "cpu"))
    a, b = there.predict(texts), here.predict(texts)
    np.testing.assert_allclose(a.values, b.values, rtol=2e-3)
    drawn = (asked.sample(texts[:4], a.objectives[:2], samples=4000) for asked in (there, here))
    np.testing.assert_allclose(*(np.median(values, axis=2) for values in drawn), rtol=0.02)


@pytest.mark.parametrize("objective", ["latency_ms@unheard", "accuracy@unheard"])
def test_it_adapts_there(objective: str) -> None:
    space, rng = get_space("nasbench201"), np.random.default_rng(0)
    texts = to_onnx_texts(space, [space.sample(rng) for _ in range(120)], measured=True)
    labels = np.full(len(texts), np.nan)
    medians = []
    for where in (DEVICE, "cpu"):
        pool = make_pool(Checkpoint.from_pretrained(device=where), texts, space=space.name)
        known = pool.features[:, pool.objectives.index("latency_ms@raspi4")]
        labels[:30] = 50 + 10 * np.tanh(known[:30])
        adapted = adapt(Checkpoint.from_pretrained(device=where), pool, objective, labels)
        medians.append(Predictor(adapted).predict(texts, [objective], quantiles=(0.5,)).median)
    assert float(spearman_rho(medians[0], medians[1])[0]) > 0.99
