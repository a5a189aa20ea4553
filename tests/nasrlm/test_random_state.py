"""The generators that a user's program may have seeded stay as they are."""

from pathlib import Path

import numpy as np
import torch

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.training.train import train
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import drawn_texts, layer_examples, network_checkpoint


def state() -> list[object]:
    """Those of torch and NumPy; importing rich, which scikit-learn does, draws from Python's."""
    return [torch.get_rng_state().tolist(), *map(str, np.random.get_state())]


def test_loading_adapting_and_training_draw_from_no_shared_generator(tmp_path: Path) -> None:
    checkpoint, texts = network_checkpoint(), drawn_texts("nasbench201", 4, np.random.default_rng(0))
    before = state()
    Checkpoint.from_pretrained()
    assert state() == before
    adapt(checkpoint, make_pool(checkpoint, texts), "latency_ms@new", np.arange(1.0, 1 + len(texts)))
    assert state() == before
    train(config(tmp_path, epochs=1), layer_examples(40), progress=False)
    assert state() == before
