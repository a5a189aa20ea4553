"""Encoded texts, and the summaries of them that readouts use.

N texts, L text tokens, S states, D width, E width of the token embeddings, C counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nasrlm.text.counts import text_counts


class Encoded(NamedTuple):
    """N texts as the encoder returns them."""

    states: Tensor  # (N, S, D), one per token, or per several neighbouring tokens
    mask: Tensor  # (N, 1, 1, S) bool, True where there is text
    text_ids: Tensor  # (N, L), 0 = padding
    texts: Sequence[str] = ()  # N, needed for summaries, readouts and sums of costs only

    def summaries(self, embedding: nn.Embedding) -> Tensor:
        """Summarise each text by a vector of fixed length.

        Returns:
            (N, D + E + C) float64: the mean of the states, the mean of the token embeddings, and counts of the network
            (``nasrlm.text.counts``).
        """
        of_states = _mean(self.states, self.mask[:, 0, 0])
        of_tokens = _mean(embedding(self.text_ids), self.text_ids != 0)
        means = torch.cat([of_states, of_tokens], dim=-1)
        return torch.cat([means, torch.from_numpy(text_counts(self.texts)).to(means.device)], dim=-1)


def _mean(x: Tensor, present: Tensor) -> Tensor:
    """Return (N, D) float64 means of (N, L, D) over the positions whose (N, L) flags are set."""
    return (x.double() * present[..., None]).sum(dim=1) / present.sum(dim=1, keepdim=True)
