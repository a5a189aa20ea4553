"""Exact quantiles, joint samples and probabilities of decoded numbers.

Sequences of number tokens sort like their numbers, so the cumulative distribution over numbers can be computed exactly
along prefixes. The q-quantile is found in one walk: at every position, take the token at which the cumulative
probability passes the remaining level, and continue with the rest of the level within this token. Quantiles are
interpolated within the last digit, so they are continuous.

Unlikely signs and exponents are not written, except the exponents next to the likeliest. The model gives a little
probability to each of them, but numbers that begin so are not the tails of a distribution: they are absurd.

N texts, L text tokens, M objectives, Q levels, T number tokens, D width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.layers import Memory
from nasrlm.model.number import FIRST_DIGIT, NEGATIVE, POSITIVE, ZERO, NumberCode

UNLIKELY = math.log(0.01)  # logit, relative to that of the likeliest sign or exponent
NEAR = (0, 1)  # how far from the likeliest sign, and exponent, unlikely ones are written nevertheless
DRAWN = -1  # in place of the tokens of a number that is not known


@torch.inference_mode()
def quantiles(model: RegressionLanguageModel, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
    """Compute quantiles of each objective by itself, given the text.

    Random levels give samples (inverse transform sampling).

    Args:
        encoded: N texts.
        objectives: (M,) objective ids.
        levels: (N, M, Q) or (M, Q) in (0, 1).

    Returns:
        (N, M, Q) float64, in the objectives' own units. Cost: T decoder steps for all rows together.
    """
    memories = model.decoder.remember(encoded)
    N, (M, Q) = len(encoded.states), levels.shape[-2:]
    rows = objectives[:, None].expand(M, Q).reshape(1, M * Q).expand(N, M * Q)
    level = levels.to(torch.float64).expand(N, M, Q).reshape(N, M * Q)
    tokens, level = _walk(model, memories, rows, level, cache=[])
    return numbers_at(model.code, tokens, level).reshape(N, M, Q)


@torch.inference_mode()
def joint_samples(
    model: RegressionLanguageModel,
    encoded: Encoded,
    objectives: Tensor,
    levels: Tensor,
    known: Tensor,
    temperature: float = 1.0,
) -> Tensor:
    """Draw joint samples of several objectives: each number is decoded given those before it.

    A number sees the previous ones without their last digit.

    Args:
        encoded: N texts.
        objectives: (M,) objective ids in decoding order.
        levels: (N, M, S) uniform in (0, 1), one for each drawn number.
        known: (N, M) values that are given instead of drawn, NaN for the rest.
        temperature: below 1 sharpens the distribution of every token, above 1 flattens it.

    Returns:
        (N, M, S) float64. Cost: M * T decoder steps for all samples together.
    """
    memories = model.decoder.remember(encoded)
    N, M, S = levels.shape
    device = objectives.device
    is_known = known.isfinite()
    ids = torch.from_numpy(model.code.encode(torch.where(is_known, known, 0.0).numpy().ravel())).reshape(N, M, -1)
    given = torch.where(is_known[..., None], ids, DRAWN).to(device)
    cache: list[tuple[Tensor, Tensor]] = []
    drawn: list[Tensor] = []
    for m in range(M):
        rows = objectives[m].expand(N, S)
        tokens, level = _walk(model, memories, rows, levels[:, m].to(device).double(), cache, given[:, m], temperature)
        drawn.append(torch.where(is_known[:, m, None], known[:, m, None], numbers_at(model.code, tokens, level)))
    return torch.stack(drawn, dim=1)


@torch.inference_mode()
def log_probabilities(
    model: RegressionLanguageModel, encoded: Encoded, objectives: Tensor, values: Tensor, joint: bool
) -> Tensor:
    """Compute the natural logarithm of the probability of the code's numbers nearest to ``values``.

    Args:
        encoded: N texts.
        objectives: (M,) objective ids in decoding order.
        values: (N, M) finite numbers.
        joint: condition each number on those before it; otherwise each is by itself.

    Returns:
        (N, M) float64.
    """
    N, M = values.shape
    ids = model.code.encode(values.numpy().ravel()).reshape(N, M, -1)
    numbers = torch.from_numpy(ids).to(objectives.device)
    visible = torch.full((M, M), joint, device=objectives.device).tril(-1).expand(N, M, M)
    logs = model.decode(model.decoder.remember(encoded), objectives.expand(N, M), numbers, visible).double()
    return logs.gather(-1, numbers[..., None])[..., 0].sum(dim=-1).cpu()


@torch.inference_mode()
def cumulative_probabilities(
    model: RegressionLanguageModel, encoded: Encoded, objectives: Tensor, values: Tensor
) -> Tensor:
    """Compute P(number <= value): the level at which ``quantiles`` returns the value.

    Args:
        encoded: N texts.
        objectives: (M,) objective ids.
        values: (N, M) finite numbers.

    Returns:
        (N, M) float64 in [0, 1].
    """
    N, M = values.shape
    code = model.code
    magnitudes = values.abs().numpy()
    ids = code.encode(values.clamp(-code.largest, code.largest).numpy().ravel()).reshape(N, M, code.length)
    numbers = torch.from_numpy(ids).to(objectives.device)
    alone = torch.zeros(N, M, M, dtype=torch.bool, device=objectives.device)
    memories = model.decoder.remember(encoded)
    logs = model.decode(memories, objectives.expand(N, M), numbers, alone)
    for position in range(FIRST_DIGIT):
        logs[:, :, position] = without_unlikely(logs[:, :, position], position).log_softmax(-1)
    probabilities = logs.exp().double()
    chosen = probabilities.gather(-1, numbers[..., None])[..., 0]
    below = probabilities.cumsum(-1).gather(-1, numbers[..., None])[..., 0] - chosen
    low, high = code.cells(ids)
    level = torch.from_numpy((magnitudes - low) / (high - low)).clamp(0, 1).to(objectives.device)
    for position in range(code.length - 1, 0, -1):
        level = below[..., position] + chosen[..., position] * level
    sign = numbers[..., 0]
    level = torch.where(sign == NEGATIVE, 1 - level, torch.where(sign == POSITIVE, level, 0.5))
    return (below[..., 0] + chosen[..., 0] * level).cpu()


def _walk(
    model: RegressionLanguageModel,
    memories: Sequence[Memory],
    rows: Tensor,
    level: Tensor,
    cache: list[tuple[Tensor, Tensor]],
    given: Tensor | None = None,
    temperature: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Return (N, R, T) tokens at (N, R) levels, and the (N, R) levels that remain within the last digit.

    ``cache`` has the numbers decoded before and is extended by these; ``given`` has the (N, T) tokens of known numbers,
    ``DRAWN`` for texts that have none.
    """
    decoder, tokens = model.decoder, None
    sign = torch.full_like(rows, POSITIVE)
    chosen: list[Tensor] = []
    for position in range(model.code.length):
        logits = decoder.step(memories, rows, position, tokens, cache).float()
        allowed = logits.masked_fill(~decoder.grammar[sign, position], -torch.inf)  # probability 0 at any temperature
        if position < FIRST_DIGIT:
            allowed = without_unlikely(allowed, position)
        probabilities = (allowed / temperature).log_softmax(-1).double().exp()
        cumulative = probabilities.cumsum(-1)
        target = level.clamp(max=1 - 1e-9) * cumulative[..., -1]  # below the end: the token is always an allowed one
        tokens = (cumulative <= target[..., None]).sum(-1)
        if given is not None:
            tokens = torch.where(given[:, None, position] == DRAWN, tokens, given[:, None, position])
        chosen.append(tokens)
        taken = probabilities.gather(-1, tokens[..., None])[..., 0]
        below = cumulative.gather(-1, tokens[..., None])[..., 0] - taken
        level = ((target - below) / taken.clamp(min=1e-300)).clamp(0, 1)
        if position == 0:
            sign = tokens
            level = torch.where(sign == NEGATIVE, 1 - level, level)  # from here on, levels ascend with the magnitude
    return torch.stack(chosen, dim=-1), level


def without_unlikely(logits: Tensor, position: int) -> Tensor:
    """Return (..., V) logits or log-probabilities of signs or exponents, -inf for those that are not written."""
    likeliest = logits.argmax(dim=-1, keepdim=True)
    is_far = (torch.arange(logits.shape[-1], device=logits.device) - likeliest).abs() > NEAR[position]
    is_unlikely = logits < logits.gather(-1, likeliest) + UNLIKELY
    return logits.masked_fill(is_far & is_unlikely, -torch.inf)


def numbers_at(code: NumberCode, tokens: Tensor, level: Tensor) -> Tensor:
    """Return the (N, R) float64 numbers of (N, R, T) tokens, at (N, R) levels within the last digit."""
    ids = tokens.cpu().numpy()
    low, high = code.cells(ids)
    return torch.from_numpy((ids[..., 0] - ZERO) * (low + level.cpu().numpy() * (high - low)) + 0.0)  # no -0.0
