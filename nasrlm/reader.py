"""Encode texts to states, in batches of similar length; each different text is encoded once.

N texts, L text tokens, S states, D width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nasrlm.arguments import has_order, items_of
from nasrlm.encoded_texts import EncodedText, EncodedTexts
from nasrlm.engines.engine import Engine
from nasrlm.model.encoded import Encoded
from nasrlm.text.tokenizer import PADDING_ID, TextTokenizer
from nasrlm.unreadable_texts import UnreadableTextError
from nasrlm.unsuitable_texts import warn_of_notations

TokenIds = Sequence[int] | NDArray[np.int32]  # the ids of one text

ROWS_PER_BATCH = 4096  # numbers decoded together: texts x objectives x quantiles
TEXTS_PER_PLAN = 8192  # texts tokenised at a time


@dataclass(frozen=True)
class TextBatch:
    """Texts to encode together.

    Attributes:
        rows: (N,) their indices among all texts.
        texts: N texts.
        token_ids: by text, for those to be encoded.
        known: by text, those that are cached.
    """

    rows: NDArray[np.intp]
    texts: Sequence[str]
    token_ids: dict[str, list[int]]
    known: dict[str, EncodedText]


class TextReader:
    """An encoder of texts with an engine and a cache.

    Args:
        tokenizer: of the texts.
        engine: encodes token ids.
        memory: cache of texts encoded by this engine.
        longest: largest number of tokens of a text.
        tokens_per_state: number of tokens that the engine joins into one state.
    """

    def __init__(
        self, tokenizer: TextTokenizer, engine: Engine, memory: EncodedTexts, longest: int, tokens_per_state: int
    ) -> None:
        self._tokenizer, self._engine, self._memory, self._longest = tokenizer, engine, memory, longest
        self._tokens_per_state = tokens_per_state

    def to_ids(self, texts: Sequence[str], rows: Sequence[int]) -> list[list[int]]:
        """Return the token ids of every text; ``rows`` are the texts' indices, for errors.

        Raises:
            UnreadableTextError: a text is empty, or too long and the tokenizer does not truncate.
        """
        token_ids = self._tokenizer.to_ids(texts)
        for index, ids in enumerate(token_ids):
            if not 0 < len(ids) <= self._longest:
                start = texts[index][:40].replace("\n", " ")
                help_ = "Use a model with a larger max_text_tokens, or leave the row out." if ids else "Leave it out."
                problem = f"expected 1 to {self._longest} tokens, got {len(ids)}"
                raise UnreadableTextError(problem, rows[index], f"({start!r}…). {help_}")
        return token_ids

    def batches(self, texts: Sequence[str], rows_per_text: int) -> Iterator[TextBatch]:
        """Yield all texts in batches of similar length."""
        for start in range(0, len(texts), TEXTS_PER_PLAN):
            yield from self._plan(texts[start : start + TEXTS_PER_PLAN], start, rows_per_text)

    def read(self, batch: TextBatch) -> Encoded:
        """Encode a batch, except texts in the cache."""
        encoded = dict(batch.known)
        if batch.token_ids:
            text_ids = pad(list(batch.token_ids.values()))
            read = zip(self._engine.encode(text_ids), text_ids, batch.token_ids.items(), strict=True)
            new = {
                text: EncodedText(states[: self._num_states(len(ids))], row[: len(ids)])
                for states, row, (text, ids) in read
            }
            self._memory.keep(new)
            encoded |= new
        together = [encoded[text] for text in batch.texts]
        states = pad_sequence([of_text.states for of_text in together], batch_first=True)
        ids = pad_sequence([of_text.token_ids for of_text in together], batch_first=True, padding_value=PADDING_ID)
        counts = torch.tensor([len(of_text.states) for of_text in together], device=states.device)
        mask = torch.arange(states.shape[1], device=states.device) < counts[:, None]
        return Encoded(states, mask[:, None, None, :], ids.to(states.device), batch.texts)

    def _num_states(self, num_tokens: int) -> int:
        return -(-num_tokens // self._tokens_per_state)

    def _plan(self, texts: Sequence[str], first_row: int, rows_per_text: int) -> Iterator[TextBatch]:
        known = self._memory.find(texts)
        new = {text: first_row + row for row, text in enumerate(texts) if text not in known}
        token_ids = dict(zip(new, self.to_ids(list(new), list(new.values())), strict=True))
        warn_of_notations(new, self._tokenizer)
        lengths = [len(known[text].token_ids) if text in known else len(token_ids[text]) for text in texts]
        order = sorted(range(len(texts)), key=lambda row: -lengths[row])  # the first of a batch is the longest
        start = 0
        while start < len(order):
            most = self._engine.tokens_per_batch // lengths[order[start]]
            rows = order[start : start + max(1, min(ROWS_PER_BATCH // rows_per_text, most))]
            start += len(rows)
            of_batch = [texts[row] for row in rows]
            yield TextBatch(
                np.array(rows) + first_row,
                of_batch,
                {text: token_ids[text] for text in of_batch if text in token_ids},
                {text: known[text] for text in of_batch if text in known},
            )


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list, because a pandas Series would be indexed by its labels.

    Raises:
        ValueError: a single string, whose characters would be taken for texts, or items that are no valid text.
    """
    if isinstance(texts, str):
        raise ValueError(f"texts: expected a list of texts, got one text, {texts[:40]!r}. Put it in a list.")
    if not has_order(texts):
        raise ValueError(f"texts: expected a list of texts, got {type(texts).__name__}.")
    listed = items_of(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise ValueError(f"texts: expected a text in every row, got {type(text).__name__} in row {row}.")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as e:  # half a surrogate pair, which JSON can contain
                raise ValueError(f"texts: expected text that UTF-8 can encode, got {e.reason} in row {row}.") from e
    return listed


def pad(token_ids: Sequence[TokenIds]) -> Tensor:
    """Return (N, L) ids, with shorter texts padded."""
    padded = np.full((len(token_ids), max(len(ids) for ids in token_ids)), PADDING_ID, dtype=np.int64)
    for row, ids in zip(padded, token_ids, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)
