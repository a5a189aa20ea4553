"""Texts to encoder states, in batches of similar length; each different text is read once.

N texts, L text tokens, S states, D width.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nasrlm.arguments import items_of
from nasrlm.encoded_texts import EncodedText, EncodedTexts
from nasrlm.engines.engine import Engine
from nasrlm.model.encoded import Encoded
from nasrlm.text.tokenizer import PADDING_ID, TextTokenizer

TokenIds = Sequence[int] | NDArray[np.int32]  # of one text

ROWS_PER_BATCH = 4096  # number rows: texts x objectives x quantiles
TEXTS_PER_PLAN = 8192  # tokenised at a time


@dataclass(frozen=True)
class TextBatch:
    """Texts to read together.

    Attributes:
        rows: (N,) which of all texts these are.
        texts: N texts.
        token_ids: of those that are not known yet.
        known: the others.
    """

    rows: NDArray[np.intp]
    texts: Sequence[str]
    token_ids: dict[str, list[int]]
    known: dict[str, EncodedText]


class UnreadableTextError(ValueError):
    """A text that is empty or longer than a model's context.

    Attributes:
        problem: what was expected and what it has.
        row: its number among the texts that were given.
    """

    def __init__(self, problem: str, row: int, rest: str, file: str = "") -> None:
        super().__init__(f"{file}{': ' if file else ''}text: {problem} in row {row} {rest}")
        self.problem, self.row, self._rest = problem, row, rest

    def in_row(self, row: int, file: str = "") -> UnreadableTextError:
        """Return this error with another row number and file: those of the data that the texts were taken from."""
        return UnreadableTextError(self.problem, row, self._rest, file)


@contextmanager
def naming_rows(row_of: Callable[[int], int], file_of: Callable[[int], str] = lambda _: "") -> Iterator[None]:
    """Within this, an ``UnreadableTextError`` is raised again with the row and file that the user knows the text by.

    Args:
        row_of: the number of a text among those read here, to the number of its row in the user's data.
        file_of: likewise, to the name of its file; "" where there is none.
    """
    try:
        yield
    except UnreadableTextError as e:
        raise e.in_row(row_of(e.row), file_of(e.row)) from e


class TextReader:
    """Reads with an engine and remembers what it has read.

    Args:
        memory: of what this engine has made of texts.
        longest: tokens a text may have.
        tokens_per_state: that the engine joins.
    """

    def __init__(
        self, tokenizer: TextTokenizer, engine: Engine, memory: EncodedTexts, longest: int, tokens_per_state: int
    ) -> None:
        self._tokenizer, self._engine, self._memory, self._longest = tokenizer, engine, memory, longest
        self._tokens_per_state = tokens_per_state

    def to_ids(self, texts: Sequence[str], rows: Sequence[int] | None = None) -> list[list[int]]:
        """Token ids of every text; ``rows`` are their numbers if not 0, 1, ….

        Raises:
            UnreadableTextError: a text is empty, or too long for a tokenizer that cuts none.
        """
        token_ids = self._tokenizer.to_ids(texts)
        for index, ids in enumerate(token_ids):
            if not 0 < len(ids) <= self._longest:
                start = texts[index][:40].replace("\n", " ")
                row = index if rows is None else rows[index]
                help_ = "Use a model with a larger max_text_tokens, or leave the row out." if ids else "Leave it out."
                problem = f"expected 1 to {self._longest} tokens, got {len(ids)}"
                raise UnreadableTextError(problem, row, f"({start!r}…). {help_}")
        return token_ids

    def batches(self, texts: Sequence[str], rows_per_text: int) -> Iterator[TextBatch]:
        """All texts, those of similar length together."""
        for start in range(0, len(texts), TEXTS_PER_PLAN):
            yield from self._plan(texts[start : start + TEXTS_PER_PLAN], start, rows_per_text)

    def read(self, batch: TextBatch) -> Encoded:
        """What the encoder makes of a batch."""
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

    def _warn_of_notations(self, texts: Iterable[str]) -> None:
        """Warn of texts of one line that look like a notation or a file name, if the model has learned ONNX text."""
        if self._tokenizer.reads_onnx and any("\n" not in text and not text.isalpha() for text in texts):
            warnings.warn(
                "texts: expected canonical ONNX text, such as the model has learned, got a line like a notation or the "
                "name of a file: answers to it mean nothing. nasrlm.to_measured_text writes that of an architecture.",
                stacklevel=3,
            )

    def _num_states(self, num_tokens: int) -> int:
        return -(-num_tokens // self._tokens_per_state)

    def _plan(self, texts: Sequence[str], first_row: int, rows_per_text: int) -> Iterator[TextBatch]:
        known = self._memory.find(texts)
        new = {text: first_row + row for row, text in enumerate(texts) if text not in known}
        token_ids = dict(zip(new, self.to_ids(list(new), list(new.values())), strict=True))
        self._warn_of_notations(new)
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
    """Return texts as a list, as rows of a pandas Series would be looked up by its index.

    Raises:
        ValueError: one text, whose characters would be read as texts, or something else in a row.
    """
    if isinstance(texts, str):
        raise ValueError(f"texts: expected a list of texts, got one text, {texts[:40]!r}. Put it in a list.")
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts: expected a list of texts, got {type(texts).__name__}.")
    listed = items_of(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise ValueError(f"texts: expected a text in every row, got {type(text).__name__} in row {row}.")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as e:  # half a surrogate pair, which JSON can spell
                raise ValueError(f"texts: expected text that UTF-8 can spell, got {e.reason} in row {row}.") from e
    return listed


def pad(token_ids: Sequence[TokenIds]) -> Tensor:
    """(N, L) ids, shorter rows filled with padding."""
    padded = np.full((len(token_ids), max(len(ids) for ids in token_ids)), PADDING_ID, dtype=np.int64)
    for row, ids in zip(padded, token_ids, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)
