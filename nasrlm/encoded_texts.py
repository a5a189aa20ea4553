"""Encoder results that are kept for the next question about the same text. L text tokens, D width."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from torch import Tensor


class EncodedTexts:
    """States by text; those asked for longest ago go first. May be shared by threads.

    Args:
        max_bytes: of all states together; 0 keeps none. A text of 44 tokens and width 128 takes 22 KB.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes, self.num_bytes = max_bytes, 0
        self._states: OrderedDict[str, Tensor] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._states)

    def find(self, texts: Iterable[str]) -> dict[str, Tensor]:
        """(L, D) states of those texts that are known."""
        with self._lock:
            found = {text: states for text in texts if (states := self._states.get(text)) is not None}
            for text in found:
                self._states.move_to_end(text)
        return found

    def keep(self, states: Mapping[str, Tensor]) -> None:
        """Take up (L, D) states of texts, copied: they are views of whole batches."""
        if self.max_bytes == 0:
            return
        with self._lock:
            for text, of_text in states.items():
                if text not in self._states:
                    self._states[text] = of_text.clone()
                    self.num_bytes += of_text.nbytes
            while self.num_bytes > self.max_bytes:
                _, oldest = self._states.popitem(last=False)
                self.num_bytes -= oldest.nbytes
