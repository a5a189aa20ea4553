"""A tokenizer for canonical ONNX text and for any other text: byte-level BPE, learned within pieces of text.

ONNX text is split at line ends, so that a frequent line becomes one token; or into chains of operators that each read
only the one before, so that a frequent chain becomes one, such as a block of expansion, depthwise convolution and
projection. Source code is split into words, digits and runs of signs, since its lines seldom recur. Any other text is
encoded as bytes, so nothing is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence, Sized
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from nasrlm.text.presentation import present
from nasrlm.text.truncation import TokenLimit

PADDING = "<pad>"
PADDING_ID = 0
LINES = r"[^\n]*\n|[^\n]+"
# Up to 12 lines of presented ONNX text (``present``) whose only operand is the line before; any other line alone.
CHAINS = r"(?:(?!\s|(?:\d+ x )?(?:as|again|output|v\d+)\b|[^\n]* \d+\n)[^\n]*\n){1,12}|[^\n]*\n|[^\n]+"
# A line end with the next line's indentation; a word with the space before it; one digit; a run of signs; spaces.
CODE_PIECES = r"\s*\n[ \t]*| ?[\p{L}_]+|\p{N}| ?[^\s\p{L}_\p{N}]+|\s+"

FIRST_OF_TOKENS = 0xF0000  # first of the private-use characters, each of which can stand for a whole token

Pieces = Literal["onnx", "chains", "code"]
_PATTERNS: dict[Pieces, str] = {"onnx": LINES, "chains": CHAINS, "code": CODE_PIECES}


class TextTokenizer:
    """A tokenizer from texts to ids and back.

    Args:
        tokenizer: of Hugging Face ``tokenizers``.
        limit: how long texts are truncated; if None, they are not.

    Example:
        >>> tokenizer = TextTokenizer.train(["x = 1\\ny = 2\\n"], vocabulary_size=300)
        >>> tokenizer.from_ids(tokenizer.to_ids(["y = 2\\n"])[0])
        'y = 2\\n'
    """

    def __init__(self, tokenizer: Tokenizer, limit: TokenLimit | None = None) -> None:
        self._tokenizer, self._limit = tokenizer, limit
        self._tokenizer.encode_special_tokens = True  # "<pad>" in a text is not padding

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary_size: int = 1024, pieces: Pieces = "onnx") -> TextTokenizer:
        """Learn merges from ``texts``, as presented to the encoder, within lines, chains or pieces of code."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = _splitting(pieces)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            special_tokens=[PADDING],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator((present(text) for text in texts), trainer)
        return cls(tokenizer)

    def extended(
        self, texts: Iterable[str], vocabulary_size: int, unchanged: Iterable[str] = (), pieces: Pieces = "onnx"
    ) -> TextTokenizer:
        """Return this tokenizer with more merges, learned from its tokens of ``texts``; old ids keep their meaning.

        Args:
            texts: to encode in fewer tokens.
            vocabulary_size: largest number of tokens, including the old ones.
            unchanged: texts whose tokens must stay the same; merges that would change them are left out.
            pieces: "chains" lets new tokens of ONNX text span several lines.

        Raises:
            ValueError: ``vocabulary_size`` leaves no room for more tokens.
        """
        self.check_room(vocabulary_size)
        known = self.tokens
        characters = [chr(FIRST_OF_TOKENS + index) for index in range(len(known))]
        more = Tokenizer(models.BPE())
        more.pre_tokenizer = pre_tokenizers.Split("\n", behavior="removed")
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size, initial_alphabet=characters, limit_alphabet=len(known), show_progress=False
        )
        split = self._of_chains() if pieces == "chains" else self
        more.train_from_iterator((split._pieces(text, characters) for text in texts), trainer)
        spelling = str.maketrans(dict(zip(characters, known, strict=True)))
        merges = [
            (pair[0].translate(spelling), pair[1].translate(spelling))
            for pair in json.loads(more.to_str())["model"]["merges"]
        ]
        kept = sorted({piece for text in unchanged for piece in re.findall(CHAINS, present(text))})
        while True:
            extended = split._with_merges(merges)
            used = {token for encoding in extended._tokenizer.encode_batch_fast(kept) for token in encoding.ids}
            changing = {token for index, token in enumerate(extended.tokens) if index in used} - set(known)
            if not changing:
                return extended
            merges = _without(merges, changing)

    def check_room(self, vocabulary_size: int) -> None:
        """Check that an extended vocabulary would have more tokens than this one.

        Raises:
            ValueError: it would not.
        """
        if vocabulary_size <= self.vocabulary_size:
            raise ValueError(
                f"vocabulary_size: expected more than the {self.vocabulary_size} tokens of the tokenizer to extend, "
                f"got {vocabulary_size}."
            )

    def _of_chains(self) -> TextTokenizer:
        """Copy the tokenizer so that new tokens may span lines of a chain; tokens that it has stay the same."""
        tokenizer = Tokenizer.from_str(self.to_json())
        tokenizer.pre_tokenizer = _splitting("chains")
        return TextTokenizer(tokenizer, self._limit)

    def _with_merges(self, merges: Sequence[tuple[str, str]]) -> TextTokenizer:
        state = json.loads(self.to_json())
        vocabulary = state["model"]["vocab"]
        for left, right in merges:
            state["model"]["merges"].append([left, right])
            vocabulary.setdefault(left + right, len(vocabulary))
        return TextTokenizer(Tokenizer.from_str(json.dumps(state)), self._limit)

    def _pieces(self, text: str, characters: Sequence[str]) -> str:
        """Return the tokens of a text as characters, with one line for every piece within which tokens are learned."""
        encoding = self._tokenizer.encode(present(text))
        pieces = groupby(zip(encoding.word_ids, encoding.ids, strict=True), key=lambda token: token[0])
        return "\n".join("".join(characters[index] for _, index in piece) for _, piece in pieces)

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, including padding."""
        return int(self._tokenizer.get_vocab_size())

    @property
    def pieces(self) -> Pieces | None:
        """Pieces of text within which the tokens were learned; None for other tokenizers, such as a T5Gemma's."""
        stored = self.to_json()
        return next((pieces for pieces, pattern in _PATTERNS.items() if json.dumps(pattern) in stored), None)

    @cached_property
    def reads_onnx(self) -> bool:
        """Whether it was learned from canonical ONNX text, so that our layers are among its tokens."""
        return any("nn.ConvBias" in token for token in self._tokenizer.get_vocab())

    @property
    def tokens(self) -> list[str]:
        """All tokens in the order of their ids, with bytes as printable characters."""
        ids = self._tokenizer.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def to_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of every text, as presented to the encoder; lengths differ. Warns of truncated texts."""
        token_ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast([present(text) for text in texts])]
        return self._limit.cut(token_ids) if self._limit else token_ids

    def limited(self, limit: TokenLimit | None) -> TextTokenizer:
        """Return the same tokenizer with this limit."""
        return TextTokenizer(self._tokenizer, limit)

    def num_cut(self, texts: Sequence[str], token_ids: Sequence[Sized]) -> int:
        """Count the texts longer than the limit, given their ids of ``to_ids``; only full ones are tokenized again."""
        if self._limit is None:
            return 0
        full = [text for text, ids in zip(texts, token_ids, strict=True) if len(ids) == self._limit.max_tokens]
        return self._limit.num_longer(self.limited(None).to_ids(full))

    def from_ids(self, ids: Sequence[int]) -> str:
        """Return the presented text of ids."""
        return str(self._tokenizer.decode(list(ids)))

    def save(self, path: Path) -> None:
        """Write ``tokenizer.json``."""
        path.write_text(self.to_json(), encoding="utf-8")

    def to_json(self) -> str:
        """Return all of it except the limit as JSON."""
        return str(self._tokenizer.to_str(pretty=False))

    @classmethod
    def from_json(cls, text: str) -> TextTokenizer:
        """Read what ``to_json`` returned."""
        return cls(Tokenizer.from_str(text))

    @classmethod
    def load(cls, path: Path) -> TextTokenizer:
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: the file is missing or no tokenizer.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except Exception as e:  # the library raises bare Exception
            raise ValueError(f"{path}: expected a tokenizer.json of HF tokenizers, got {type(e).__name__}: {e}") from e


def _without(merges: Sequence[tuple[str, str]], tokens: set[str]) -> list[tuple[str, str]]:
    """Return the merges that neither create one of these tokens nor need one."""
    kept: list[tuple[str, str]] = []
    lost = set(tokens)
    for left, right in merges:
        if left + right in tokens or left in lost or right in lost:
            lost.add(left + right)
        else:
            kept.append((left, right))
    return kept


def _splitting(pieces: Pieces) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(_PATTERNS[pieces]), behavior="isolated")
    return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
