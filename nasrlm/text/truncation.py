"""Truncate texts that are longer than the context, if the model's config allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nasrlm.callers import warn_caller

Truncation = Literal["error", "head", "tail", "head_and_tail"]


class CutTextWarning(UserWarning):
    """A warning that some texts are truncated."""


@dataclass(frozen=True)
class TokenLimit:
    """A limit on the number of tokens of a text.

    Attributes:
        max_tokens: the limit; at least 2 for "head_and_tail".
        keep: the part that is kept: "head", "tail", or "head_and_tail", half of each.
    """

    max_tokens: int
    keep: Truncation

    def cut(self, token_ids: Sequence[list[int]]) -> list[list[int]]:
        """Return the ids that are kept of each text; warns how many texts were truncated."""
        if num_longer := self.num_longer(token_ids):
            warn_caller(
                f"text: {num_longer} of {len(token_ids)} are longer than {self.max_tokens} tokens; only "
                f"{self.keep.replace('_', ' ')} is read, according to the model's `truncation`.",
                CutTextWarning,
            )
        return [self._kept(ids) if len(ids) > self.max_tokens else ids for ids in token_ids]

    def num_longer(self, token_ids: Sequence[Sequence[int]]) -> int:
        """Return how many texts are longer than the limit."""
        return sum(len(ids) > self.max_tokens for ids in token_ids)

    def _kept(self, ids: list[int]) -> list[int]:
        head = {"head": self.max_tokens, "tail": 0}.get(self.keep, self.max_tokens - self.max_tokens // 2)
        return ids[:head] + ids[len(ids) - (self.max_tokens - head) :]
