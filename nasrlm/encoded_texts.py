"""Encoder results that are kept for the next question about the same text. L text tokens, S states, D width."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torch import Tensor


class EncodedText(NamedTuple):
    """One text, without padding."""

    states: Tensor  # (S, D)
    token_ids: Tensor  # (L,)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that it takes."""
        return self.states.nbytes + self.token_ids.nbytes

    def clone(self) -> EncodedText:
        """A copy that holds nothing but itself."""
        return EncodedText(self.states.clone(), self.token_ids.clone())


class EncodedTexts:
    """What an encoder made of texts; those asked for longest ago go first. May be shared by threads.

    Args:
        max_bytes: of all together; 0 keeps none. A text of 44 tokens and width 128 takes 23 KB.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.num_bytes = max_bytes, 0
        self._kept: OrderedDict[str, EncodedText] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[EncodedTexts], tuple[int]]:
        """A copy, pickled or deep, begins empty."""
        return EncodedTexts, (self.max_bytes,)

    def find(self, texts: Iterable[str]) -> dict[str, EncodedText]:
        """Those texts that are known."""
        with self._lock:
            found = {text: encoded for text in texts if (encoded := self._kept.get(text)) is not None}
            for text in found:
                self._kept.move_to_end(text)
        return found

    def keep(self, encoded: Mapping[str, EncodedText]) -> None:
        """Take up texts, copied: they are views of whole batches."""
        if self.max_bytes == 0:
            return
        with self._lock:
            for text, of_text in encoded.items():
                if text not in self._kept:
                    self._kept[text] = of_text.clone()
                    self.num_bytes += of_text.num_bytes
            while self.num_bytes > self.max_bytes:
                _, oldest = self._kept.popitem(last=False)
                self.num_bytes -= oldest.num_bytes
