"""What an encoder made of a text is kept while there is room."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from nasrlm.encoded_texts import EncodedText, EncodedTexts
from nasrlm.engines.onnx_engine import OnnxEngine
from nasrlm.predictor import Predictor
from tests.nasrlm.scenes import OBJECTIVES


def read(length: int) -> EncodedText:
    return EncodedText(torch.full((length, 4), float(length)), torch.ones(length, dtype=torch.int64))


TOKEN = 4 * 4 + 8  # bytes that one takes


def test_those_asked_for_longest_ago_go_first() -> None:
    memory = EncodedTexts(max_bytes=TOKEN * 10)
    memory.keep({"a": read(4), "b": read(4)})
    assert set(memory.find(["a", "c"])) == {"a"}
    memory.keep({"c": read(5)})
    assert set(memory.find(["a", "b", "c"])) == {"a", "c"}
    assert memory.num_bytes == TOKEN * 9
    assert len(memory) == 2


def test_a_text_is_counted_once_and_one_too_long_is_not_kept() -> None:
    memory = EncodedTexts(max_bytes=TOKEN * 10)
    memory.keep({"a": read(4)})
    memory.keep({"a": read(4)})
    assert memory.num_bytes == TOKEN * 4
    memory.keep({"b": read(11)})
    assert memory.num_bytes == len(memory) == 0


def test_no_room_keeps_nothing() -> None:
    memory = EncodedTexts(max_bytes=0)
    memory.keep({"a": read(1)})
    assert memory.find(["a"]) == {}


def test_a_kept_text_does_not_hold_its_batch() -> None:
    memory = EncodedTexts(max_bytes=1000)
    states, token_ids = torch.zeros(8, 4, 4), torch.ones(8, 4, dtype=torch.int64)
    memory.keep({"a": EncodedText(states[0], token_ids[0])})
    assert [part.untyped_storage().nbytes() for part in memory.find(["a"])["a"]] == [4 * 4 * 4, 4 * 8]


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were encoded, call by call."""
    counts: list[int] = []
    encode = OnnxEngine.encode

    def counted(self: OnnxEngine, text_ids: Tensor) -> Tensor:
        counts.append(len(text_ids))
        return encode(self, text_ids)

    monkeypatch.setattr(OnnxEngine, "encode", counted)
    return counts


TEXTS = ["Conv3\n", "Pool\n", "Conv3\n", "Skip\nSkip\n", "Conv3\n"]


def test_each_different_text_is_read_once(checkpoint_folder: Path, encoded: list[int]) -> None:
    predictor = Predictor.from_pretrained(checkpoint_folder)
    values = predictor.predict(TEXTS).values
    assert sum(encoded) == 3
    np.testing.assert_array_equal(values[0], values[2])
    predictor.sample(TEXTS, OBJECTIVES, 2)
    predictor.predict(TEXTS[::-1], OBJECTIVES[1:])
    assert sum(encoded) == 3
    again = predictor.predict([*TEXTS, "Pool\nPool\n"]).values
    assert sum(encoded) == 4
    np.testing.assert_allclose(again[:5], values, rtol=1e-6)
