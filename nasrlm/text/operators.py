"""Operators of canonical ONNX text, each with what is counted of it; equal ones are one object."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod

from nasrlm.text.remembered import remembered

CALL = "block."
PASSED = frozenset({"Relu", "BatchNormalization", "Identity", "Sum", "Add"})  # operators that walks skip
LARGEST = 1e30  # limit of counts and sizes, which nested blocks or huge attributes could make infinite
_KERNEL = re.compile(r"weight_shape=\[\d+,\d+,([\d,]+)\]|kernel_shape=\[(\d+)")
_MARKS = {"s": r"strides=\[(?!1(?:,1)*\])", "g": r"group=(?!1\b)", "d": r"dilations=\[(?!1(?:,1)*\])"}
_STRIDE = re.compile(r"\bstrides=\[(\d+)")
_WEIGHT = re.compile(r"(?:weight_shape=\[(\d+(?:,\d+)*)|(?:^|,)\[(\d+,\d+,\d+,\d+))\]")
_REFERENCE = re.compile(r"@(a\d+)")
_ARGUMENT = re.compile(r"(a\d+)=(\[[^\[\]]*\]|[^,]+)")

Arguments = tuple[tuple[str, str], ...]  # pairs of parameter and value of a call


class OtherTextError(ValueError):
    """Text that is not in canonical form."""


@dataclass(frozen=True, eq=False)  # compared by identity, which is quicker than comparing attributes
class Operator:
    """An operator, or a call of a block, without the values that it reads and produces.

    Attributes:
        op_type: its type.
        attributes: of the form ``name=value,…``, in blocks with references ``@a0`` to their parameters.
    """

    op_type: str
    attributes: str

    @cached_property
    def spelled(self) -> str:
        """Its operator type and attributes."""
        return f"{self.op_type} {self.attributes}".rstrip()

    @cached_property
    def callee(self) -> str:
        """The name of the block that it calls; "" if it is no call."""
        return self.op_type.removeprefix(CALL) if self.op_type.startswith(CALL) else ""

    @cached_property
    def arguments(self) -> Arguments:
        """The arguments of a call.

        Raises:
            OtherTextError: its attributes have another form.
        """
        arguments = dict(_ARGUMENT.findall(self.attributes))
        if ",".join(f"{name}={value}" for name, value in arguments.items()) != self.attributes:
            raise OtherTextError
        return tuple(arguments.items())

    def with_values(self, given: Arguments) -> Operator:
        """Replace references to these parameters by their values; other references stay."""
        return _with_values(self.spelled, given) if "@" in self.attributes else self

    @cached_property
    def label(self) -> str:
        """Its type with its kernel, as in ``studies.surrogates.features``; of a call ``op_type``."""
        if self.callee:
            return self.op_type
        operator = self.op_type.rpartition(".")[2].removesuffix("Bias")
        if operator == "Scale" and self.attributes == "factor=0":
            return "Zero"
        kernel = _KERNEL.search(self.attributes)
        size = (kernel[1] or kernel[2]).replace(",", "x") if kernel else ""
        marks = [mark for mark, pattern in _MARKS.items() if re.search(pattern, self.attributes)]
        return operator + size + "".join(marks)

    @cached_property
    def is_passed(self) -> bool:
        """Whether walks skip it and continue to its neighbours."""
        return self.op_type.rpartition(".")[2] in PASSED

    @cached_property
    def num_weights(self) -> float:
        """The number of weights of a layer, or of a weight shape among the arguments of a call."""
        found = _WEIGHT.findall(self.attributes)
        return min(sum(prod(map(float, (layer or call).split(","))) for layer, call in found), LARGEST)

    @cached_property
    def num_filters(self) -> float | None:
        """The first number of its weight shape, which is the number of channels of a layer's output; None if none."""
        found = _WEIGHT.search(self.attributes)
        return min(float((found[1] or found[2]).split(",")[0]), LARGEST) if found else None

    def times_smaller(self, before: float) -> float:
        """Return how many times smaller its output is than the network's input; ``before`` is that of its input."""
        return before / self._stride if self._grows else min(before * self._stride, LARGEST)

    @cached_property
    def _stride(self) -> float:
        found = _STRIDE.search(self.attributes)
        return min(max(float(found[1]), 1.0), LARGEST) if found else 1.0

    @cached_property
    def _grows(self) -> bool:
        return "Transpose" in self.op_type


@remembered
def operator_of(spelled: str) -> Operator:
    """Return the operator with this type and these attributes, of the form of ``Operator.spelled``."""
    op_type, _, attributes = spelled.partition(" ")
    return Operator(op_type, attributes)


@remembered
def _with_values(spelled: str, given: Arguments) -> Operator:
    op_type, _, attributes = spelled.partition(" ")
    values = dict(given)
    return operator_of(f"{op_type} {_REFERENCE.sub(lambda match: values.get(match[1], match[0]), attributes)}")
