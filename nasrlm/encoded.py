"""What an encoder makes of texts. N texts, L text tokens, D width, E width of the tokens' embeddings."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Encoded(NamedTuple):
    """N texts as the decoder reads them."""

    states: Tensor  # (N, L, D)
    mask: Tensor  # (N, 1, 1, L) bool, True where there is text
    text_ids: Tensor  # (N, L), 0 = padding

    def summaries(self, embedding: nn.Embedding) -> Tensor:
        """(N, D + E) float64: the mean of each text's states, and that of its tokens before they were read."""
        present = self.mask[:, 0, 0, :, None]
        together = torch.cat([self.states, embedding(self.text_ids)], dim=-1).double()
        return (together * present).sum(dim=1) / present.sum(dim=1)
