"""Graphs of operators: which one reads which, of any network or of a body of canonical ONNX text.

V operators.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nasrlm.text.bodies import is_executed
from nasrlm.text.inlining import NumberedBody
from nasrlm.text.operators import LARGEST, Operator

INPUT, OUTPUT = "input", "output"
_IMAGE = re.compile(r"network \w+\[\w+,\d+,(\d+(?:,\d+)*)\]")


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing operators
class OperatorGraph:
    """Operators in an order in which each comes after those that it reads.

    Attributes:
        labels: (V,) operator types with their kernels.
        passed: (V,) whether walks skip the operator and continue to its neighbours.
        sources: (V,) numbers of the operators that each one reads.
    """

    labels: Sequence[str]
    passed: Sequence[bool]
    sources: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class BodyGraph(OperatorGraph):
    """The operators of a body of text, after its input and before its output.

    Attributes:
        header: that of the body.
        operators: (V - 2,) operators in the order of the body.
    """

    header: str
    operators: Sequence[Operator]

    @classmethod
    def of(cls, body: NumberedBody) -> BodyGraph:
        """Return the graph of a body."""
        sources = [[body.makers[x] + 1 if x >= 0 else 0 for x in values] for values in (*body.operands, body.outputs)]
        labels = [INPUT, *[operator.label for operator in body.operators], OUTPUT]
        passed = [False, *[operator.is_passed for operator in body.operators], False]
        return cls(labels, passed, [[], *sources], body.header, body.operators)

    @property
    def is_executed(self) -> bool:
        """Whether it is an executed block, in which every operator takes time."""
        return is_executed(self.header)

    @property
    def num_pixels(self) -> float:
        """The number of pixels of the input image; 1 if the input is no image."""
        return num_pixels(self.header)


NO_OPERATORS = OperatorGraph((INPUT, OUTPUT), (False, False), ((), ()))


def num_pixels(header: str) -> float:
    """Return the number of pixels of a network's input image, given the header of its graph; 1 if there is none."""
    image = _IMAGE.fullmatch(header)
    return min(prod(map(float, image[1].split(","))), LARGEST) if image else 1.0
