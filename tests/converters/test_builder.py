"""A builder refuses what no network computes, where it is asked for."""

import numpy as np
import pytest

from converters import graph_to_onnx_text
from converters.builder import GraphBuilder

WRONG = {
    "groups": (lambda g: g.conv(g.input, 8, kernel=3, groups=2), "channels divisible by 2 groups, got 3 and 8"),
    "no channels": (lambda g: g.conv(g.input, 0, kernel=3), "1 or more, got 0"),
    "no groups": (lambda g: g.conv(g.input, 8, kernel=3, groups=0), "1 or more, got 0"),
    "no stride": (lambda g: g.conv(g.input, 8, kernel=3, stride=0), "1 or more, got 0"),
    "no dilation": (lambda g: g.conv(g.input, 8, kernel=3, dilation=0), "1 or more, got 0"),
    "no kernel": (lambda g: g.conv(g.input, 8, kernel=(3, 0)), "1 or more, got 0"),
    "less than no padding": (lambda g: g.conv(g.input, 8, kernel=3, padding=-1), "0 or more, got -1"),
    "no features": (lambda g: g.linear(g.flatten(g.input), 0), "1 or more, got 0"),
    "open size": (lambda g: g.reshape(g.input, 1, -1), "1 or more, got -1"),
    "no pixels": (lambda g: GraphBuilder((1, 3, 8, 0)), "1 or more, got 0"),
    "no stride of a pool": (lambda g: g.max_pool(g.input, kernel=2, stride=0), "1 or more, got 0"),
    "more padding than kernel": (lambda g: g.max_pool(g.input, kernel=2, padding=2), "padding below 2, .* got 2"),
    "no groups of channels": (lambda g: g.channel_shuffle(g.input, 0), "1 or more, got 0"),
    "slice of no axis": (lambda g: g.slice(g.input, axes=(4,), starts=(0,), ends=(1,)), r"0\.\.3, .* got axes \(4,\)"),
    "slice from behind": (lambda g: g.slice(g.input, axes=(-1,), starts=(0,), ends=(1,)), r"0\.\.3, .*axes \(-1,\)"),
    "slice without end": (lambda g: g.slice(g.input, axes=(1,), starts=(0,), ends=()), r"0\.\.3, .* got .* ends \(\)"),
    "one axis twice": (lambda g: g.slice(g.input, axes=(2, 2), starts=(0, 0), ends=(1, 1)), r"got axes \(2, 2\)"),
    "channels": (lambda g: g.conv(g.input, 16 * 1.5, kernel=3), r"whole number, got 24\.0"),
    "kernel's half": (lambda g: g.conv(g.input, 8, kernel=(1, 3.0)), r"whole number, got 3\.0"),
    "three sides": (lambda g: g.conv(g.input, 8, kernel=(3, 3, 3)), r"whole number, got \(3, 3, 3\)"),
    "features": (lambda g: g.linear(g.flatten(g.input), 10.0), r"whole number, got 10\.0"),
    "sizes": (lambda g: g.reshape(g.input, 1, 3 * 64.0), r"whole number, got 192\.0"),
    "windows": (lambda g: g.average_pool(g.input, kernel="2"), "whole number, got '2'"),
    "input": (lambda g: GraphBuilder((1, 3, 8, 8.0)), r"whole number, got 8\.0"),
    "kernel": (lambda g: g.conv(g.input, 8, kernel=11, padding=1), "at most 10 pixels, .* got 11"),
    "reach": (lambda g: g.conv(g.input, 8, kernel=3, padding=0, dilation=4), "at most 8 pixels, .* got 9"),
    "pool": (lambda g: g.max_pool(g.input, kernel=9), "at most 8 pixels, .* got 9"),
    "axes": (lambda g: g.conv(g.flatten(g.input), 8, kernel=3), r"four axes .* got \(1, 192\)"),
    "factor": (lambda g: g.multiply(g.input, g.conv(g.input, 8, kernel=1)), r"a factor .* got shape \(1, 8, 8, 8\)"),
    "operands": (lambda g: g.concat(g.input, g.max_pool(g.input, kernel=2)), "that differ only in channels, got"),
    "no operands": (lambda g: g.concat(), r"shapes that differ only in channels, got \[\]"),
    "no channel axis": (lambda g: g.concat(g.reshape(g.input, 192)), r"differ only in channels, got \[\(192,\)\]"),
    "too few axes": (lambda g: g.transpose(g.input, 0, 1), r"each of the 4 axes once, got \(0, 1\)"),
    "axes from the end": (lambda g: g.transpose(g.input, 0, 1, 3, -2), r"each of the 4 axes once, got \(0, 1, 3, -2\)"),
    "no image": (lambda g: g.global_average_pool(g.flatten(g.input)), r"four axes .* got \(1, 192\)"),
    "shuffled rows": (lambda g: g.channel_shuffle(g.flatten(g.input), 2), r"four axes .* got \(1, 192\)"),
    "no outputs": (lambda g: g.build(), r"values of this graph as outputs, got \(\)"),
    "other outputs": (lambda g: g.build("logits"), r"values of this graph as outputs, got \('logits',\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_no_network_computes_is_refused(name):
    ask, message = WRONG[name]
    with pytest.raises(ValueError, match=f"expected .*{message}"):
        ask(GraphBuilder((1, 3, 8, 8)))


def test_factors_may_repeat_axes():
    g = GraphBuilder((1, 3, 8, 8))
    assert g.shapes[g.multiply(g.input, g.global_average_pool(g.input))] == (1, 3, 8, 8)


def test_sizes_may_be_numpy_integers():
    """They equal Python's own, of which answers are kept."""

    def text(size):
        g = GraphBuilder((1, 3, 8, size(8)))
        x = g.conv(g.input, size(77), kernel=(size(3), size(1)), stride=size(1), groups=size(1))
        x = g.slice(g.max_pool(x, kernel=size(2)), axes=(size(3),), starts=(size(1),), ends=(size(7),))
        x = g.transpose(g.reshape(x, size(1), size(77), size(42)), size(0), size(2), size(1))
        return graph_to_onnx_text(g.build(g.linear(x, size(10))))

    assert text(np.int64) == text(int)
