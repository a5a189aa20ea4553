"""What the recipes start from: a checkpoint that has read many networks and knows their counts, and no label."""

from pathlib import Path

import numpy as np
import pytest

from converters.tables.counts import COUNTS, Counting
from nasrlm.metrics import kendall_tau
from nasrlm.predictor import Predictor
from spaces import get_space

COUNTED = Path(__file__).parents[2] / "studies" / "recipes" / "checkpoints" / "counts"


@pytest.mark.parametrize(("name", "least"), [("two_path", 0.85), ("nasbench201", 0.75), ("fbnet", 0.85)])
def test_the_counted_checkpoint_ranks_by_counts(name: str, least: float) -> None:
    space, rng = get_space(name), np.random.default_rng(123)
    count = Counting(texts=True)
    *counts, texts = zip(*[count(space, space.sample(rng)) for _ in range(60)], strict=True)
    predictor = Predictor.from_pretrained(COUNTED).of_space(name)
    assert predictor.objectives == COUNTS
    taus = kendall_tau(predictor.predict(texts).median, np.array(counts, dtype=np.float64).T)
    assert all(taus[[COUNTS.index(count) for count in ("params@onnx", "live_macs@onnx")]] > least), taus
