"""The numbers of the released checkpoint: exact quantiles are those of its samples, and engines rank alike."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from converters import to_measured_text
from converters.bulk import to_onnx_texts
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.checkpoints.folder import released_folder
from nasrlm.metrics import kendall_tau
from nasrlm.model.decoding import log_probabilities
from nasrlm.model.encoded import Encoded
from nasrlm.predictor import Predictor
from nasrlm.reader import pad
from spaces import get_space
from tests.converters.golden import read_table

SPACE = get_space("nasbench201")
SAMPLES = 20_000
FARTHEST = 0.0175  # Kolmogorov-Smirnov: one in 100,000 times farther, of so many samples
LEVELS = tuple(np.arange(1, 100) / 100)


def released() -> Checkpoint:
    return Checkpoint.from_pretrained().of_space(SPACE.name)


def read(checkpoint: Checkpoint, text: str) -> Encoded:
    with torch.inference_mode():
        encoded: Encoded = checkpoint.model.encoder(pad(checkpoint.tokenizer.to_ids([text])))
    return encoded


def draw(checkpoint: Checkpoint, encoded: Encoded, objective: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Samples token by token, each token by its probability in the whole decoder: nothing of ``decoding`` is used."""
    model, code = checkpoint.model, checkpoint.model.code
    prefixes, counts = code.encode([1.0]), np.array([SAMPLES])
    for position in range(code.length):
        texts = Encoded(*[part.expand(len(prefixes), *part.shape[1:]) for part in encoded[:3]])
        asked = torch.full((len(prefixes), 1), objective)
        alone = torch.zeros(len(prefixes), 1, 1, dtype=torch.bool)
        with torch.inference_mode():
            memory = model.decoder.remember(texts)
            logs = model.decode(memory, asked, torch.from_numpy(prefixes)[:, None], alone)[:, 0, position]
        probabilities = logs.double().exp().numpy()
        drawn = rng.multinomial(counts, probabilities / probabilities.sum(axis=1, keepdims=True))
        rows, tokens = np.nonzero(drawn)
        prefixes, counts = prefixes[rows].copy(), drawn[rows, tokens]
        prefixes[:, position] = tokens
        if position == 0:
            prefixes[:, 1:] = np.where(tokens[:, None] == 1, code.encode([0.0])[0, 1:], prefixes[:, 1:])
    low, high = (np.repeat(ends, counts) for ends in code.cells(prefixes))
    sign, _, _ = code.parts(prefixes)
    return np.repeat(sign, counts) * rng.uniform(low, high)


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in released_folder().iterdir()) <= 16_000_000


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_exact_quantiles_are_those_of_samples(engine: str) -> None:
    checkpoint = replace(released(), calibration={}, sums={})
    rng = np.random.default_rng(0)
    text = to_measured_text(SPACE, SPACE.sample(rng))
    here = read(checkpoint, text)
    names = checkpoint.objectives_of(SPACE.name)
    exact = Predictor(checkpoint, engine).predict([text], names, quantiles=LEVELS).values[0]  # type: ignore[arg-type]
    for name, quantiles in zip(names, exact, strict=True):
        samples = np.sort(draw(checkpoint, here, checkpoint.objectives.index(name), rng))
        below = np.searchsorted(samples, quantiles) / SAMPLES
        assert np.abs(below - LEVELS).max() < FARTHEST, name


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("engine", ["onnxruntime", "onnxruntime-int8"])
def test_engines_rank_alike(engine: str) -> None:
    table = read_table("nasbench201")
    rows: pd.DataFrame = table[table["split"] == "test"]
    texts = to_onnx_texts(SPACE, [SPACE.parse(x) for x in rows["architecture"]], measured=True)
    checkpoint = released()
    objectives = [name for name in checkpoint.objectives_of(SPACE.name) if name in rows]
    labels = rows[list(objectives)].to_numpy(dtype=np.float64)
    plain, other = (
        kendall_tau(Predictor(checkpoint, name).predict(texts, objectives).median, labels)  # type: ignore[arg-type]
        for name in ("torch", engine)
    )
    assert np.abs(plain - other).max() < (0.005 if engine == "onnxruntime" else 0.02)


def test_probabilities_of_the_released_checkpoint_are_those_of_its_samples() -> None:
    checkpoint = released()
    rng = np.random.default_rng(1)
    text = to_measured_text(SPACE, SPACE.sample(rng))
    here = read(checkpoint, text)
    code = checkpoint.model.code
    spelled = code.decode(code.encode(draw(checkpoint, here, 0, rng)))
    values, counts = np.unique(spelled, return_counts=True)
    often = values[counts > 400]
    ask = torch.tensor([0])
    found = [log_probabilities(checkpoint.model, here, ask, torch.tensor([[value]]), False)[0, 0] for value in often]
    expected = SAMPLES * torch.stack(found).exp().numpy()
    assert len(often)
    assert (np.abs(counts[counts > 400] - expected) < 5 * np.sqrt(expected)).all()
