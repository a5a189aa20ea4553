"""A new device in ten measurements: a new objective prompt, learned from a few labels.

Devices resemble each other. What the model already predicts of a text (all its objectives) are the features of a
Gaussian process that is fitted to the few labels; drawn from its posterior, as many labels as there are texts teach
the decoder one new prompt, and a matrix by which it follows the text. Nothing else of the model moves, so the old
objectives answer as before, bit for bit.

Where the pool has features of the networks' graphs, sizes and counts of their operators are features beside the
predictions: a device that drops what is not needed is unlike most others. Accuracies in a space that the model has not
seen resemble nothing it predicts; for them, graphs are what the process goes by, each group of features with a scale
that the labels decide.

N texts, M known objectives, L text tokens, F features of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel
from torch import Tensor
from tqdm import trange

from nasrlm.calibration import Calibration
from nasrlm.checkpoint import Checkpoint
from nasrlm.decoder import Decoder, Memory, mean_state
from nasrlm.denormals import denormals_as_zero
from nasrlm.group_process import GroupProcess
from nasrlm.loss import number_loss, smoothing_kernel
from nasrlm.model import RegressionLanguageModel
from nasrlm.objective import FloatArray, Objective, decoding_order
from nasrlm.predictor import Predictor, pad

NOISE = 0.03  # variance of a label that the features do not explain, in units of all labels' variance
CURVATURE = 0.3  # variance of what is not linear in the features
GRAPHS = 0.25  # variance of sizes and counts of the graphs, in units of that of the predictions
STEPS = 600
BATCH_SIZE = 128
LEARNING_RATE = 0.03  # of the prompt
STEERING_LEARNING_RATE = 0.003  # of the matrix; at 0.005 it has not settled when the steps are over
SMOOTHING_DIGITS = 0.3
PERCENT = (0.0, 100.0)

Draw = Callable[[NDArray[np.intp]], FloatArray]


@dataclass(frozen=True)
class Pool:
    """Texts with what the model predicts of them.

    Attributes:
        texts: N texts.
        features: (N, M) medians of the known objectives, on the scale on which they are learned, standardised.
        groups: (N, F) each, features of the texts' networks as ``converters.features.feature_groups`` gives them, sizes
            and counts first; may be none.
    """

    texts: Sequence[str]
    features: FloatArray
    groups: Sequence[FloatArray] = ()

    @cached_property
    def inputs(self) -> FloatArray:
        """(N, M + F) what costs are learned from: predictions, and sizes and counts where there are any."""
        if not self.groups:
            return self.features
        counts = self.groups[0]
        weight = math.sqrt(GRAPHS * self.features.shape[1] / counts.shape[1])
        return np.concatenate([self.features, weight * counts], axis=1)


def make_pool(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    progress: bool = False,
    groups: Sequence[FloatArray] = (),
    space: str = "",
) -> Pool:
    """Predict of every text whatever is known of its space; ``groups`` of features are kept beside it."""
    prediction = Predictor(checkpoint, "auto").of_space(space).predict(texts, quantiles=(0.5,), progress=progress)
    scaled = [_scaled(name, prediction.median[:, m]) for m, name in enumerate(prediction.objectives)]
    features = np.stack(scaled, axis=1)
    return Pool(texts, (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1e-9), groups)


def choose_diverse(pool: Pool, candidates: NDArray[np.intp], samples: int) -> NDArray[np.intp]:
    """The texts whose labels would tell most about all candidates: greatest fall of the mean posterior variance.

    Args:
        candidates: rows of the pool that may be chosen.
        samples: how many.

    Returns:
        (samples,) rows of the pool, most telling first.
    """
    covariance = _kernel(pool.inputs.shape[1])(pool.inputs[candidates])
    chosen: list[int] = []
    for _ in range(samples):
        gain = (covariance**2).sum(axis=0) / (covariance.diagonal() + NOISE)
        gain[chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (column[best] + NOISE)
    return candidates[chosen]


def adapt(
    checkpoint: Checkpoint,
    pool: Pool,
    objective: str,
    labels: FloatArray,
    *,
    seed: int = 0,
    progress: bool = False,
) -> Checkpoint:
    """A checkpoint that also answers a new objective, or answers a known one anew.

    Args:
        checkpoint: what to start from; left as it is.
        pool: texts with and without labels; a thousand or two of the space that will be asked about.
        objective: ``metric_unit@context``.
        labels: (N,) in the objective's unit, NaN where there is none; ten are a good start.

    Raises:
        ValueError: fewer than two labels, an objective's name that cannot be read, or a model that spells no digits.
    """
    if checkpoint.model.config.head != "digits":
        raise ValueError(f"adapt: expected a checkpoint with head digits, got head {checkpoint.model.config.head}.")
    known = np.flatnonzero(np.isfinite(labels))
    if len(known) < 2:
        raise ValueError(f"adapt: expected two or more labels of {objective}, got {len(known)}.")
    rng = np.random.default_rng(seed)
    by_graphs = bool(pool.groups) and _is_accuracy(objective)
    draw = (_draw_by_graphs if by_graphs else _draw_by_predictions)(pool, objective, known, labels[known], rng)
    adapted = _with_prompt(checkpoint, objective)
    _learn_prompt(adapted, pool.texts, objective, draw, rng, progress)
    return adapted


def _draw_by_predictions(
    pool: Pool, objective: str, known: NDArray[np.intp], labels: FloatArray, rng: np.random.Generator
) -> Draw:
    """Labels of rows as a process expects them that goes by what the model predicts above all."""
    process = GaussianProcessRegressor(_kernel(pool.inputs.shape[1]), alpha=NOISE, optimizer=None, normalize_y=True)
    process.fit(pool.inputs[known], _scaled(objective, labels))
    mean, deviation = process.predict(pool.inputs, return_std=True)
    logarithmic = _multiplies(objective, labels)

    def draw(rows: NDArray[np.intp]) -> FloatArray:
        drawn: FloatArray = rng.normal(mean[rows], deviation[rows])
        values: FloatArray = np.exp(drawn) if logarithmic else drawn
        return values

    return draw


def _draw_by_graphs(
    pool: Pool, objective: str, known: NDArray[np.intp], labels: FloatArray, rng: np.random.Generator
) -> Draw:
    """The same by all groups of features and, as one group more, what the model predicts."""
    process = GroupProcess([*pool.groups, pool.features]).fit(known, labels)
    mean, deviation = process.predict(np.arange(len(pool.texts)))

    def draw(rows: NDArray[np.intp]) -> FloatArray:
        values = process.scores.backward(rng.normal(mean[rows], deviation[rows]))
        return np.clip(values, *PERCENT)

    return draw


def _multiplies(objective: str, values: FloatArray) -> bool:
    """Costs multiply from device to device and are learned on a logarithmic scale, accuracies as they are."""
    return not _is_accuracy(objective) and bool((values > 0).all())


def _is_accuracy(objective: str) -> bool:
    return "accuracy" in Objective.parse(objective).metric


def _scaled(objective: str, values: FloatArray) -> FloatArray:
    scaled: FloatArray = np.log(values) if _multiplies(objective, values) else values
    return scaled


def _kernel(num_features: int) -> Kernel:
    linear = ConstantKernel(1 / num_features) * DotProduct(sigma_0=1e-3)
    return linear + ConstantKernel(CURVATURE) * RBF(length_scale=math.sqrt(num_features))


def _with_prompt(checkpoint: Checkpoint, objective: str) -> Checkpoint:
    """The same model with a prompt for one more objective, steered by nothing yet; accuracies stand before costs."""
    old = checkpoint.model
    names = decoding_order(dict.fromkeys((*checkpoint.objectives, objective)))
    weights = old.state_dict()
    prompts = weights["decoder.objectives.weight"]
    rows = [prompts[checkpoint.objectives.index(x)] if x in checkpoint.objectives else prompts.mean(0) for x in names]
    steering = {checkpoint.objectives[i]: weights["decoder.steering"][a] for a, i in enumerate(_steered(checkpoint))}
    steering[objective] = prompts.new_zeros(old.config.width, old.config.width)  # on the model's device
    config = replace(old.config, num_steered=len(steering))
    model = RegressionLanguageModel(config, checkpoint.tokenizer.vocabulary_size, len(names), old.code)
    changed = {
        "decoder.objectives.weight": torch.stack(rows),
        "decoder.steering": torch.stack([*steering.values()]),
        "decoder.steered": torch.tensor([names.index(name) for name in steering]),
    }
    model.load_state_dict({**weights, **changed})
    return replace(
        checkpoint,
        model=model.to(prompts.device).eval(),
        objectives=names,
        calibration=_without(objective, checkpoint.calibration),
        calibration_by_space={space: _without(objective, x) for space, x in checkpoint.calibration_by_space.items()},
    )


def _steered(checkpoint: Checkpoint) -> list[int]:
    """Ids of the objectives whose prompts follow the text."""
    decoder = checkpoint.model.decoder
    return decoder.steered.tolist() if isinstance(decoder, Decoder) and decoder.config.num_steered else []


def _without(objective: str, calibration: Calibration) -> Calibration:
    return {name: levels for name, levels in calibration.items() if name != objective}


def _learn_prompt(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    objective: str,
    draw: Draw,
    rng: np.random.Generator,
    progress: bool,
) -> None:
    """Fit the prompt of one objective, and how it follows the text, to labels that are drawn anew in every step.

    Texts are read once, and what the decoder remembers of them is kept.
    """
    model, decoder = checkpoint.model, checkpoint.model.decoder
    assert isinstance(decoder, Decoder)
    index = checkpoint.objectives.index(objective)
    prompts, steering = decoder.objectives.weight, decoder.steering
    kernel = smoothing_kernel(model.code, SMOOTHING_DIGITS).to(prompts.device)
    memory, means = _remember(checkpoint, texts)

    def loss(rows: NDArray[np.intp], prompt: int) -> Tensor:
        numbers = torch.from_numpy(model.code.encode(draw(rows)))[:, None, :].to(prompts.device)
        asked = torch.full((len(rows), 1), prompt, device=prompts.device)
        alone = torch.zeros(len(rows), 1, 1, dtype=torch.bool, device=prompts.device)
        read = memory.rows(rows)._replace(changes=decoder.changes(means[rows]))
        log_probabilities = model.decode(read, asked, numbers, alone)
        return number_loss(log_probabilities, numbers, torch.ones_like(alone[..., 0]), kernel)

    with torch.no_grad():  # start from the objective that is most alike
        some = rng.choice(len(texts), min(len(texts), 4 * BATCH_SIZE), replace=False)
        alike = min((row for row in range(len(prompts)) if row != index), key=lambda row: float(loss(some, row)))
        prompts[index] = prompts[alike]
    for parameter in model.parameters():
        parameter.requires_grad_(parameter is prompts or parameter is steering)
    rates = [{"params": [prompts], "lr": LEARNING_RATE}, {"params": [steering], "lr": STEERING_LEARNING_RATE}]
    optimizer = torch.optim.Adam(rates)  # prompts that no row asks for stay as they are
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    with denormals_as_zero():
        for _ in trange(STEPS, desc="adapt", unit="step", disable=not progress):
            optimizer.zero_grad()
            loss(rng.integers(len(texts), size=BATCH_SIZE), index).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def _remember(checkpoint: Checkpoint, texts: Sequence[str]) -> tuple[Memory, Tensor]:
    """What the decoder reads of all texts, and the (N, D) means of their states."""
    model = checkpoint.model
    text_ids = pad(Predictor(checkpoint).to_ids(texts)).to(model.decoder.objectives.weight.device)
    parts: list[Memory] = []
    means: list[Tensor] = []
    with torch.no_grad():
        for part in torch.split(text_ids, BATCH_SIZE):
            encoded = model.encoder(part)
            parts.append(Memory.of(model.decoder.layers, *encoded))
            means.append(mean_state(*encoded))
    keys, values = (
        [torch.cat(of_layer) for of_layer in zip(*[getattr(part, name) for part in parts], strict=True)]
        for name in ("keys", "values")
    )
    return Memory(keys, values, torch.cat([part.mask for part in parts])), torch.cat(means)
