"""The graph of a body of canonical ONNX text: its operators, and which one reads which.

V operators.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from nasrlm.text.bodies import Body, Line
from nasrlm.text.remembered import remembered

INPUT, OUTPUT = "input", "output"
PASSED = frozenset({"Relu", "BatchNormalization", "Identity", "Sum", "Add"})  # operators that walks skip
_KERNEL = re.compile(r"weight_shape=\[\d+,\d+,([\d,]+)\]|kernel_shape=\[(\d+)")
_MARKS = {"s": r"strides=\[(?!1(?:,1)*\])", "g": r"group=(?!1\b)", "d": r"dilations=\[(?!1(?:,1)*\])"}


@dataclass(frozen=True)
class OperatorGraph:
    """Operators in the order of a body, its input first and its output last.

    Attributes:
        labels: (V,) operator types with their kernels.
        passed: (V,) whether walks skip the operator and continue to its neighbours.
        sources: (V,) numbers of the operators that each one reads.
    """

    labels: Sequence[str]
    passed: Sequence[bool]
    sources: Sequence[Sequence[int]]

    @classmethod
    def of(cls, body: Body) -> OperatorGraph:
        """Build the graph of a body's operators; values that no line of the body produces have no edges."""
        sources: list[Sequence[int]] = [[]]
        maker = dict.fromkeys(body.inputs, 0)
        for number, line in enumerate(body.lines, start=1):
            sources.append([maker[x] for x in line.inputs if x in maker])
            maker.update(dict.fromkeys(line.outputs, number))
        sources.append([maker[x] for x in body.outputs if x in maker])
        passed = [line.op_type.rpartition(".")[2] in PASSED for line in body.lines]
        return cls([INPUT, *map(operator_label, body.lines), OUTPUT], [False, *passed, False], sources)


NO_OPERATORS = OperatorGraph((INPUT, OUTPUT), (False, False), ((), ()))


def operator_label(line: Line) -> str:
    """Return the operator type with its kernel, as in ``studies.surrogates.features``; for a call the block's name."""
    return line.op_type if line.callee else _operator_label(line.operator)


@remembered
def _operator_label(spelled: str) -> str:
    op_type, _, attributes = spelled.partition(" ")
    operator = op_type.rpartition(".")[2].removesuffix("Bias")
    if operator == "Scale" and attributes == "factor=0":
        return "Zero"
    kernel = _KERNEL.search(attributes)
    size = (kernel[1] or kernel[2]).replace(",", "x") if kernel else ""
    return operator + size + "".join(mark for mark, pattern in _MARKS.items() if re.search(pattern, attributes))
