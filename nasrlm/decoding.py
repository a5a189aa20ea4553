"""Exact quantiles, samples and cumulative probabilities of decoded numbers.

Number tokens sort like the numbers they spell, so a distribution over spellings has an exact cumulative
distribution along its prefixes. The q-quantile is found in one walk: at every position take the token at which
the cumulative probability passes the level that is left, and go on with the remainder. The last digit
interpolates, so quantiles are continuous.

N texts, M objectives, Q levels, T number tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nasrlm.model import Memory, RegressionLanguageModel, masked_log_softmax
from nasrlm.number import NEGATIVE, POSITIVE, ZERO


@torch.inference_mode()
def quantiles(model: RegressionLanguageModel, text_ids: Tensor, objectives: Tensor, levels: Tensor) -> Tensor:
    """Quantiles of each objective by itself, given the text.

    Random levels make samples (inverse transform sampling).

    Args:
        text_ids: (N, L).
        objectives: (M,) objective ids.
        levels: (N, M, Q) or (M, Q) in (0, 1).

    Returns:
        (N, M, Q) float64, in the objectives' own units. Cost: T decoder steps for all rows together.
    """
    memory = model.decoder.remember(*model.encoder(text_ids))
    N, (M, Q) = len(text_ids), levels.shape[-2:]
    rows = objectives[:, None].expand(M, Q).reshape(1, M * Q).expand(N, M * Q)
    level = levels.to(torch.float64).expand(N, M, Q).reshape(N, M * Q)
    tokens, level = _walk(model, memory, rows, level)
    ids = tokens.cpu().numpy()
    low, high = model.code.cells(ids)
    values = (ids[..., 0] - ZERO) * (low + level.cpu().numpy() * (high - low)) + 0.0  # no -0.0
    return torch.from_numpy(values).reshape(N, M, Q)


@torch.inference_mode()
def cumulative_probabilities(
    model: RegressionLanguageModel, text_ids: Tensor, objectives: Tensor, values: Tensor
) -> Tensor:
    """P(number <= value): the level at which ``quantiles`` gives the value back.

    Args:
        text_ids: (N, L).
        objectives: (M,) objective ids.
        values: (N, M) finite numbers.

    Returns:
        (N, M) float64 in [0, 1].
    """
    N, M = values.shape
    code = model.code
    magnitudes = values.abs().numpy()
    ids = code.encode(values.clamp(-code.largest, code.largest).numpy().ravel()).reshape(N, M, code.length)
    numbers = torch.from_numpy(ids).to(text_ids.device)
    alone = torch.zeros(N, M, M, dtype=torch.bool, device=text_ids.device)
    probabilities = model(text_ids, objectives.expand(N, M), numbers, alone).exp().double()
    chosen = probabilities.gather(-1, numbers[..., None])[..., 0]
    below = probabilities.cumsum(-1).gather(-1, numbers[..., None])[..., 0] - chosen
    low, high = code.cells(ids)
    level = torch.from_numpy((magnitudes - low) / (high - low)).clamp(0, 1).to(text_ids.device)
    for position in range(code.length - 1, 0, -1):
        level = below[..., position] + chosen[..., position] * level
    sign = numbers[..., 0]
    level = torch.where(sign == NEGATIVE, 1 - level, torch.where(sign == POSITIVE, level, 0.5))
    return (below[..., 0] + chosen[..., 0] * level).cpu()


def _walk(model: RegressionLanguageModel, memory: Memory, rows: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    """(N, R, T) tokens at the levels, and the (N, R) levels that are left within the last digit."""
    decoder, tokens = model.decoder, None
    sign = torch.full_like(rows, POSITIVE)
    chosen: list[Tensor] = []
    cache: list[tuple[Tensor, Tensor]] = []
    for position in range(model.code.length):
        logits = decoder.step(memory, rows, position, tokens, cache)
        probabilities = masked_log_softmax(logits, decoder.grammar[sign, position]).double().exp()
        cumulative = probabilities.cumsum(-1)
        target = level.clamp(max=1 - 1e-9) * cumulative[..., -1]  # below the end: the token is always an allowed one
        tokens = (cumulative <= target[..., None]).sum(-1)
        chosen.append(tokens)
        taken = probabilities.gather(-1, tokens[..., None])[..., 0]
        below = cumulative.gather(-1, tokens[..., None])[..., 0] - taken
        level = ((target - below) / taken.clamp(min=1e-300)).clamp(0, 1)
        if position == 0:
            sign = tokens
            level = torch.where(sign == NEGATIVE, 1 - level, level)  # the larger, the further from zero
    return torch.stack(chosen, dim=-1), level
