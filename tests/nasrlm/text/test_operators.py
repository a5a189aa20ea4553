"""Operators of texts: equal ones are one object, and calls give their values to blocks."""

import pytest

from nasrlm.text.operators import OtherTextError, operator_of
from nasrlm.text.remembered import LONGEST_KEPT


def test_equal_operators_are_one_object_unless_they_are_long() -> None:
    assert operator_of("Softmax axis=1") is operator_of("Softmax axis=1")
    assert (operator_of("Relu").op_type, operator_of("Relu").attributes) == ("Relu", "")
    for long in (f"Relu a={'1' * LONGEST_KEPT}", f"{'R' * LONGEST_KEPT} a=1"):  # a server reads texts from anybody
        assert operator_of(long) is not operator_of(long)
        assert operator_of(long).spelled == long


def test_references_get_the_values_of_a_call_but_names_do_not() -> None:
    call = operator_of("block.B0 a0=[4,2,3,3],a1=2")
    assert (call.callee, call.arguments) == ("B0", (("a0", "[4,2,3,3]"), ("a1", "2")))
    layer = operator_of("nn.Conv group=@a1,pads=@a7,weight_shape=@a0")
    assert layer.with_values(call.arguments) is operator_of("nn.Conv group=2,pads=@a7,weight_shape=[4,2,3,3]")
    assert operator_of("my@a0 axis=@a1").with_values(call.arguments).spelled == "my@a0 axis=2"
    with pytest.raises(OtherTextError):
        _ = operator_of("block.B0 axis=4").arguments
