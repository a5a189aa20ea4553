"""Tiny models, texts and tables for the tests of nasrlm."""

from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from converters import to_onnx_text
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.examples import Examples
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode
from nasrlm.text.tokenizer import TextTokenizer
from spaces import get_space

CODE = NumberCode(num_digits=2, min_exponent=0, max_exponent=1)  # 361 numbers: ±1.0 … ±99 and zero
SIZES = ModelConfig(
    width=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, hidden=32, dropout=0.0, max_text_tokens=512
)
OBJECTIVES = ("accuracy@cifar10", "latency_ms@raspi4")
LAYERS = {"Conv3": (5.0, 2.0), "Conv1": (2.0, 0.5), "Pool": (1.0, 0.25), "Skip": (0.0, 0.0)}  # accuracy, latency
FRAME = pd.DataFrame(
    {
        "architecture": ["0123", "4-5"],
        "split": ["train", "test"],
        "accuracy@cifar10": [93.25, np.nan],
        "latency_ms@raspi4": [7, 8],
        "params": [1000, 2000],
        "index": [0, 1],
    }
)


def tiny_model(seed: int = 0, *, vocabulary_size: int = 20, num_objectives: int = 2) -> RegressionLanguageModel:
    """A random model whose distributions are far from uniform."""
    torch.manual_seed(seed)
    model = RegressionLanguageModel(SIZES, vocabulary_size, num_objectives, CODE).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model


def all_spellings() -> Tensor:
    """(361, T) ids of every number of CODE, ascending."""
    values = np.concatenate([np.arange(1.0, 10.0, 0.1), np.arange(10.0, 100.0)])
    return torch.from_numpy(CODE.encode(np.concatenate([-values[::-1], [0.0], values])))


def spelling_probabilities(model: RegressionLanguageModel, text_ids: Tensor, objective: int) -> Tensor:
    """(361,) teacher-forced probability of each of ``all_spellings``, given one text."""
    numbers = all_spellings()[:, None, :]
    N = len(numbers)
    objectives = torch.full((N, 1), objective)
    alone = torch.zeros(N, 1, 1, dtype=torch.bool)
    with torch.inference_mode():
        log_probabilities = model(text_ids.expand(N, -1), objectives, numbers, alone)
    return log_probabilities.gather(-1, numbers[..., None]).double().sum(dim=(1, 2, 3)).exp()


def layer_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Texts of one to six layers, each with its accuracy and latency; a quarter of the rows are for validation."""
    rng = np.random.default_rng(seed)
    names = [rng.choice(list(LAYERS), size=rng.integers(1, 7)) for _ in range(rows)]
    labels = np.array([np.sum([LAYERS[name] for name in drawn], axis=0) for drawn in names])
    return pd.DataFrame(
        {
            "text": ["".join(f"{name}\n" for name in drawn) for drawn in names],
            "split": ["valid" if row % 4 == 0 else "train" for row in range(rows)],
            OBJECTIVES[0]: 60 + labels[:, 0],
            OBJECTIVES[1]: 1 + labels[:, 1],
        }
    )


def layer_examples(rows: int = 240, seed: int = 0) -> Examples:
    """``layer_table`` as examples."""
    table = layer_table(rows, seed)
    return Examples.of_table(table, table["text"].tolist(), OBJECTIVES)


def numbered(count: int) -> list[str]:
    """Different texts, of no networks."""
    return list(map(str, range(count)))


def architecture_table(rows: int, seed: int = 0) -> pd.DataFrame:
    """NAS-Bench-201 architectures with made-up labels of OBJECTIVES, and of a device no checkpoint knows."""
    space, rng = get_space("nasbench201"), np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "space": space.name,
            "architecture": [space.format(space.sample(rng)) for _ in range(rows)],
            "split": ["train", "valid", "test", "train"] * (rows // 4),
            OBJECTIVES[0]: rng.uniform(60, 95, rows),
            OBJECTIVES[1]: rng.uniform(1, 20, rows),
            "latency_ms@unheard": rng.uniform(1, 20, rows),
        }
    )


def drawn_texts(name: str, count: int, rng: np.random.Generator) -> list[str]:
    """The different texts of ``count`` networks of the space ``name``, in the order drawn."""
    space = get_space(name)
    return list(dict.fromkeys(to_onnx_text(space, space.sample(rng)) for _ in range(count)))


@cache
def _network_tokenizer() -> TextTokenizer:
    texts = drawn_texts("nasbench201", 20, np.random.default_rng(0))
    return TextTokenizer.train(texts, vocabulary_size=1024)


def network_checkpoint() -> Checkpoint:
    """A random model with a tokenizer of NAS-Bench-201 texts."""
    tokenizer = _network_tokenizer()
    model = tiny_model(vocabulary_size=tokenizer.vocabulary_size)
    grid = [round(0.01 * level, 2) for level in range(1, 100)]
    return Checkpoint(model, tokenizer, OBJECTIVES, {OBJECTIVES[0]: grid}, {"steps": 0})
