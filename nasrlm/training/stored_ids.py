"""Store the token ids of a run's texts in its folder, because tokenizing a million texts takes longer than many steps.

N texts, L tokens of a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

import nasrlm
from nasrlm.files import replacing
from nasrlm.model.config import ModelConfig
from nasrlm.reader import TokenIds
from nasrlm.text.tokenizer import TextTokenizer

FILE = "token_ids.safetensors"
KEY = "of"  # name of the key in the file's metadata


def key_of(data: str, tokenizer: TextTokenizer, config: ModelConfig) -> str:
    """Return a hash of what token ids depend on: examples, nasrlm's version, context, truncation and tokenizer.

    Args:
        data: digest of the examples, see ``Examples.digest``.
        tokenizer: the tokenizer of the run.
        config: the config of the model.
    """
    what = f"{data} {nasrlm.__version__} {config.max_text_tokens} {config.truncation} {tokenizer.to_json()}"
    return hashlib.sha256(what.encode()).hexdigest()


def stored_ids(path: Path, key: str) -> list[NDArray[np.int32]] | None:
    """Read what ``store_ids`` wrote: (L,) ids of N texts; None if the file is missing, broken, or has another key."""
    try:
        with safe_open(path, framework="pt") as stored:
            if (stored.metadata() or {}).get(KEY) != key:
                return None
            ids, ends = (stored.get_tensor(name).numpy() for name in ("ids", "ends"))
    except (SafetensorError, OSError):
        return None
    return np.split(ids, ends[:-1])


def store_ids(path: Path, key: str, token_ids: Sequence[TokenIds]) -> None:
    """Write the (L,) ids of each of N texts to a file.

    Args:
        path: file to write or replace.
        key: key from ``key_of``, by which ``stored_ids`` checks that the ids are still valid.
        token_ids: ids of N texts.

    Raises:
        OSError: the folder cannot be written, or its disk is full; the message names the file.
    """
    ids = np.concatenate(token_ids)
    ends = np.cumsum([len(of_text) for of_text in token_ids])
    with replacing(path) as temporary:
        try:
            save_file({"ids": torch.from_numpy(ids), "ends": torch.from_numpy(ends)}, temporary, metadata={KEY: key})
        except SafetensorError as e:  # safetensors raises it instead of an OSError
            raise OSError(f"{path}: expected to write this file, got {e}. Is the disk full?") from e
