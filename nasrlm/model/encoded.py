"""What an encoder makes of texts.

N texts, L text tokens, S states, D width, E width of the tokens' embeddings, C counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nasrlm.text.counts import text_counts


class Encoded(NamedTuple):
    """N texts as the decoder reads them."""

    states: Tensor  # (N, S, D), one a token or one of several
    mask: Tensor  # (N, 1, 1, S) bool, True where there is text
    text_ids: Tensor  # (N, L), 0 = padding
    texts: Sequence[str] = ()  # where they may be asked for their summaries

    def summaries(self, embedding: nn.Embedding) -> Tensor:
        """Sum up each text by one vector, whatever its length.

        Returns:
            (N, D + E + C) float64: the mean of its D states, that of its tokens' E embeddings, and the C counts of its
            network (``nasrlm.text.counts``).
        """
        of_states = _mean(self.states, self.mask[:, 0, 0])
        of_tokens = _mean(embedding(self.text_ids), self.text_ids != 0)
        means = torch.cat([of_states, of_tokens], dim=-1)
        return torch.cat([means, torch.from_numpy(text_counts(self.texts)).to(means.device)], dim=-1)


def _mean(x: Tensor, present: Tensor) -> Tensor:
    """(N, D) float64 means of (N, L, D) where (N, L) flags are set."""
    return (x.double() * present[..., None]).sum(dim=1) / present.sum(dim=1, keepdim=True)
