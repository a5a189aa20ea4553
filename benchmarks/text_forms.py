"""Convert canonical ONNX text to other forms, to compare them with the form that the encoder reads.

The forms with names and with distances have the same content as ``nasrlm.text.presentation``: the bodies of a network,
in the order of their first calls, operator by operator. They are not ONNX, so the encoder reads them unchanged.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from nasrlm.text.inlining import NumberedBody
from nasrlm.text.network import read_network
from nasrlm.text.tokenizer import TextTokenizer

LETTERS = 0xE000  # first of Unicode's private-use characters
_SUM = re.compile(r"(?<= = )(Sum|Add) \(([^()]+)\)")


def with_names(onnx_text: str) -> str:
    """Convert to the form in which operators refer to values by name: ``v4 Sum v2 v3``."""
    return _written(_named(body) for body in _bodies(onnx_text))


def with_distances(onnx_text: str) -> str:
    """Convert to the form in which operators refer to values by how many rows ago they were made: ``Sum @1 @2``."""
    return _written(_by_distance(body) for body in _bodies(onnx_text))


def as_letters(texts: Sequence[str], tokenizer: TextTokenizer) -> list[str]:
    """Replace each of our tokens by its own letter, so that the tokenizer of another library finds the same tokens."""
    return ["".join(chr(LETTERS + token) for token in ids) for ids in tokenizer.to_ids(texts)]


def reordered(onnx_text: str, rng: np.random.Generator) -> str:
    """Shuffle the operands of every sum, which leaves the network the same; a function for ``augment``."""

    def shuffled(match: re.Match[str]) -> str:
        return f"{match[1]} ({', '.join(rng.permutation(match[2].split(', ')))})"

    return _SUM.sub(shuffled, onnx_text)


def _bodies(onnx_text: str) -> Sequence[NumberedBody]:
    network = read_network(onnx_text)
    assert network is not None, f"expected canonical ONNX text, got {onnx_text[:40]!r}"
    return network.bodies


def _written(bodies: Iterator[Iterator[str]]) -> str:
    return "\n".join(row for body in bodies for row in body) + "\n"


def _named(body: NumberedBody) -> Iterator[str]:
    names = [f"v{len(body.inputs) + value}" for value in range(len(body.makers))]
    named = [*names, *reversed(body.inputs)]  # so that -1 is the first input
    yield f"{body.header} {' '.join(body.inputs)} to {' '.join(named[x] for x in body.outputs)}"
    for number, (operator, operands) in enumerate(zip(body.operators, body.operands, strict=True)):
        outputs = names[bisect_left(body.makers, number) : bisect_right(body.makers, number)]
        yield f"{' '.join(outputs)} {operator.spelled} {' '.join(named[x] for x in operands)}"


def _by_distance(body: NumberedBody) -> Iterator[str]:
    yield body.header
    for row, (operator, operands) in enumerate(zip(body.operators, body.operands, strict=True), start=1):
        yield " ".join([operator.spelled, *(f"@{row - (body.makers[x] + 1 if x >= 0 else 0)}" for x in operands)])
