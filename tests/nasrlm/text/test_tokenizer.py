"""Text to tokens and back, without loss."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.text.presentation import present
from nasrlm.text.tokenizer import PADDING, PADDING_ID, TextTokenizer
from spaces import get_space
from tests.nasrlm.scenes import layer_table
from tests.nasrlm.text.test_presentation import CANONICAL

TOKENIZER = TextTokenizer.train(layer_table(50)["text"], vocabulary_size=300)
CODE = "def double(x):\n    y_1 = 2.5 * x  # twice\n\n    return y_1\n"
FOR_CODE = TextTokenizer.train([CODE] * 9, 400, pieces="code")


@given(st.lists(st.text(), max_size=3))
def test_any_text_comes_back(texts: list[str]) -> None:
    token_ids = TOKENIZER.to_ids(texts)
    assert [TOKENIZER.from_ids(ids) for ids in token_ids] == texts
    assert all(PADDING_ID not in ids for ids in token_ids)


def test_a_text_that_spells_the_padding_token_is_text() -> None:
    (ids,) = TOKENIZER.to_ids([f"a {PADDING} b"])
    assert PADDING_ID not in ids
    assert TOKENIZER.from_ids(ids) == f"a {PADDING} b"


def test_a_frequent_line_is_one_token() -> None:
    assert [len(ids) for ids in TOKENIZER.to_ids(["Conv3\n", "Conv3\nPool\n", "Conv3\nConv3\nConv3\n"])] == [1, 2, 3]
    assert TOKENIZER.vocabulary_size <= 300


def test_a_frequent_chain_is_one_token() -> None:
    tokenizer = TextTokenizer.train(["Conv3\nRelu\nConv1\nas\nPool\nagain 0\nSum 2\n"] * 9, 400, "chains")
    (ids,) = tokenizer.to_ids(["Conv3\nRelu\nConv1\nas\nConv3\nRelu\nConv1\nagain 0\nSum 2\nPool\n"])
    chain = "Conv3\nRelu\nConv1\n"
    assert [tokenizer.from_ids([x]) for x in ids] == [chain, "as\n", chain, "again 0\n", "Sum 2\n", "Pool\n"]


@pytest.mark.parametrize("row", ["as\n", "again 3\n", "2 x again 0\n", "Sum 2\n", "v0\n", "output 1\n", "  Relu\n"])
def test_a_chain_ends_where_values_meet(row: str) -> None:
    tokenizer = TextTokenizer.train([f"Conv3\n{row}Relu\n"] * 9, 400, "chains")
    (ids,) = tokenizer.to_ids([f"Conv3\n{row}Relu\n"])
    assert [tokenizer.from_ids([x]) for x in ids] == ["Conv3\n", row, "Relu\n"]


def test_canonical_text_is_read_as_presented() -> None:
    (ids,) = TOKENIZER.to_ids([CANONICAL])
    assert TOKENIZER.from_ids(ids) == present(CANONICAL) != CANONICAL


def test_a_network_is_a_few_dozen_tokens(checkpoint: Checkpoint) -> None:
    from converters import to_onnx_text

    space = get_space("nasbench201")
    text = to_onnx_text(space, space.decode((1, 2, 3, 4, 2, 3)))
    assert len(checkpoint.tokenizer.to_ids([text])[0]) < 80


def test_a_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer.json")
    loaded = TextTokenizer.load(tmp_path / "tokenizer.json")
    texts = [f"Conv3\nPool\n{PADDING}", CANONICAL]
    assert loaded.to_ids(texts) == TOKENIZER.to_ids(texts)
    assert loaded.vocabulary_size == TOKENIZER.vocabulary_size


@given(st.lists(st.text(), max_size=3))
def test_code_comes_back(texts: list[str]) -> None:
    token_ids = FOR_CODE.to_ids([*texts, CODE])
    assert [FOR_CODE.from_ids(ids) for ids in token_ids] == [*texts, CODE]


def test_tokens_of_code_are_words_digits_and_signs(tmp_path: Path) -> None:
    FOR_CODE.save(tmp_path / "tokenizer.json")
    for tokenizer in (FOR_CODE, TextTokenizer.load(tmp_path / "tokenizer.json")):
        tokens = [tokenizer.from_ids([token]) for token in tokenizer.to_ids([CODE])[0]]
        assert tokens[:6] == ["def", " double", "(", "x", "):", "\n    "]
        assert tokens[6:14] == ["y_", "1", " =", " ", "2", ".", "5", " *"]


@pytest.mark.parametrize(("known", "text"), [(TOKENIZER, "Conv3\nAdd 2\n"), (FOR_CODE, "total = double(2)\n")])
def test_an_extended_tokenizer_reads_what_is_new_in_fewer_tokens(known: TextTokenizer, text: str) -> None:
    extended = known.extended([text] * 9, known.vocabulary_size + 20)
    assert known.vocabulary_size < extended.vocabulary_size <= known.vocabulary_size + 20
    assert extended.tokens[: known.vocabulary_size] == known.tokens
    assert len(extended.to_ids([text])[0]) < len(known.to_ids([text])[0])
    assert [extended.from_ids(ids) for ids in extended.to_ids([text, CODE])] == [text, CODE]


def test_texts_that_are_to_stay_are_read_as_before() -> None:
    chain, shared = "Conv3\nRelu\nConv1\n", "Relu\nConv1\nPool\n"
    known = TextTokenizer.train([chain, f"as\n{shared}"] * 2, 262)
    free = known.extended([chain] * 9, 400, pieces="chains")
    extended = known.extended([chain] * 9, 400, unchanged=[shared], pieces="chains")
    assert free.to_ids([shared]) != known.to_ids([shared])
    assert extended.to_ids([shared]) == known.to_ids([shared])
    assert len(free.to_ids([chain])[0]) <= len(extended.to_ids([chain])[0]) < len(known.to_ids([chain])[0])
    assert extended.from_ids(extended.to_ids([chain])[0]) == chain


def test_a_tokenizer_of_lines_is_extended_within_them_or_over_chains() -> None:
    known = TextTokenizer.train(["Conv3\n", "Relu\n"] * 9, 300)
    chain = "Conv3\nRelu\n"
    of_lines, of_chains = known.extended([chain] * 9, 400), known.extended([chain] * 9, 400, pieces="chains")
    assert [len(x.to_ids([chain])[0]) for x in (known, of_lines, of_chains)] == [2, 2, 1]


def test_new_tokens_stay_within_pieces() -> None:
    extended = TOKENIZER.extended(["Conv3\nPool\n"] * 9, TOKENIZER.vocabulary_size + 20)
    assert extended.tokens == TOKENIZER.tokens  # two tokens before, and a token ends where a line ends


@pytest.mark.parametrize("contents", ["", "{}", "no json"])
def test_a_broken_tokenizer_is_refused(tmp_path: Path, contents: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(contents)
    with pytest.raises(ValueError, match=r"tokenizer\.json: expected a tokenizer\.json of HF tokenizers, got"):
        TextTokenizer.load(path)


def test_a_vocabulary_without_room_for_more_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"vocabulary_size: expected more than the \d+ tokens of the tokenizer to extend"
    ):
        TOKENIZER.extended(["Conv3\n"] * 9, TOKENIZER.vocabulary_size)
