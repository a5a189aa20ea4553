"""Learned tokens for canonical ONNX text and for any other text: byte-level BPE over lines.

Text is split at line ends only, so a frequent line is one token. Bytes are the fallback: nothing is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from nasrlm.presentation import present

PADDING = "<pad>"
PADDING_ID = 0


class TextTokenizer:
    """Text to ids and back.

    Example:
        >>> tokenizer = TextTokenizer.train(["x = 1\\ny = 2\\n"], vocabulary_size=300)
        >>> tokenizer.from_ids(tokenizer.to_ids(["y = 2\\n"])[0])
        'y = 2\\n'
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokenizer.encode_special_tokens = True  # a text that says <pad> is not padding

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary_size: int = 1024) -> TextTokenizer:
        """Learn the merges of ``texts``, as presented to the encoder."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split("\n", behavior="merged_with_previous"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=[PADDING],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator((present(text) for text in texts), trainer)
        return cls(tokenizer)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, padding included."""
        return int(self._tokenizer.get_vocab_size())

    def to_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of every text, as presented to the encoder; lengths differ."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch([present(text) for text in texts])]

    def from_ids(self, ids: Sequence[int]) -> str:
        """The presented text that ids spell."""
        return str(self._tokenizer.decode(list(ids)))

    def save(self, path: Path) -> None:
        """Write ``tokenizer.json``."""
        path.write_text(self._tokenizer.to_str(pretty=False))

    @classmethod
    def load(cls, path: Path) -> TextTokenizer:
        """Read what ``save`` wrote.

        Raises:
            ValueError: the file is missing or no tokenizer.
        """
        try:
            return cls(Tokenizer.from_str(path.read_text()))
        except Exception as e:  # the library raises bare Exception
            raise ValueError(f"{path}: expected a tokenizer.json of HF tokenizers, got {type(e).__name__}: {e}") from e
