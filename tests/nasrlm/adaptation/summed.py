"""A space of which two costs are sums of what rows cost, one is chance and an accuracy is none of both."""

from collections import defaultdict

import numpy as np
import pandas as pd

from converters.bulk import to_onnx_texts
from nasrlm.arrays import FloatArray
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.text.row_counts import row_counts
from spaces import get_space
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, tiny_model

SPACE = get_space("nasbench201")
ACCURACY, LATENCY = OBJECTIVES
THROUGHPUT, NOISE = "throughput_ips@a100", "latency_ms@noise"
NAMES = (ACCURACY, LATENCY, THROUGHPUT, NOISE)


def true_latencies(texts: list[str], noise: float = 0.0) -> FloatArray:
    """(N,) sums of what their rows cost."""
    rng = np.random.default_rng(1)
    cost_of: dict[int, float] = defaultdict(lambda: float(rng.uniform(0.02, 0.3)))
    sums = [sum(count * cost_of[row] for row, count in row_counts(text).by_row.items()) for text in texts]
    return np.array(sums) * np.exp(noise * rng.normal(size=len(texts)))


def labelled_table(rows: int = 240, noise: float = 0.01) -> pd.DataFrame:
    table = architecture_table(rows)
    texts = to_onnx_texts(SPACE, [SPACE.parse(x) for x in table["architecture"]], measured=True)
    latencies = true_latencies(texts, noise)
    chance = np.random.default_rng(2).uniform(1, 20, rows).round()
    chance[:2] = 0.0  # which has no logarithm
    return table.assign(text=texts, **{LATENCY: latencies, THROUGHPUT: 1000 / latencies, NOISE: chance})


def rows_of_test(table: pd.DataFrame) -> pd.DataFrame:
    rows: pd.DataFrame = table[table["split"] == "test"]
    return rows


def spelling_checkpoint(known: Checkpoint) -> Checkpoint:
    """That spells all of ``NAMES``, with the tokens of another one."""
    model = tiny_model(vocabulary_size=known.tokenizer.vocabulary_size, num_objectives=len(NAMES))
    return Checkpoint(model, known.tokenizer, NAMES, card={"commands": [], "test": {SPACE.name: {}}})
