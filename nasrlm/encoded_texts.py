"""A cache of encoded texts, for repeated predictions of the same text. L text tokens, S states, D width."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torch import Tensor

from nasrlm.arguments import check_number


class EncodedText(NamedTuple):
    """An encoded text, without padding."""

    states: Tensor  # (S, D)
    token_ids: Tensor  # (L,)

    @property
    def num_bytes(self) -> int:
        """Memory of its tensors, in bytes."""
        return self.states.nbytes + self.token_ids.nbytes

    def clone(self) -> EncodedText:
        """Return a copy that does not keep the memory of a whole batch alive."""
        return EncodedText(self.states.clone(), self.token_ids.clone())


class EncodedTexts:
    """A cache of encoded texts that drops the least recently used; it may be shared by threads.

    Args:
        max_bytes: of all texts together; 0 caches none. A text of 44 tokens and width 128 takes 23 KB.

    Raises:
        ValueError: ``max_bytes``, the ``memory_bytes`` of a predictor, is no number of 0 or more.
    """

    def __init__(self, max_bytes: int) -> None:
        check_number("memory_bytes", max_bytes, 0)
        self.max_bytes, self.num_bytes = max_bytes, 0
        self._kept: OrderedDict[str, EncodedText] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[EncodedTexts], tuple[int]]:
        """Make copies, pickled or deep, start empty."""
        return EncodedTexts, (self.max_bytes,)

    def find(self, texts: Iterable[str]) -> dict[str, EncodedText]:
        """Return the cached ones of these texts."""
        with self._lock:
            found = {text: encoded for text in texts if (encoded := self._kept.get(text)) is not None}
            for text in found:
                self._kept.move_to_end(text)
        return found

    def keep(self, encoded: Mapping[str, EncodedText]) -> None:
        """Add copies of encoded texts, which are views of whole batches."""
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
