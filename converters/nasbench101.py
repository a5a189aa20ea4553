"""Graphs of NAS-Bench-101: stem, three stages of three modules, with pools between the stages."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from spaces.nasbench101 import Module, NASBench101

MODULES_PER_STAGE = 3
CHANNELS = (128, 256, 512)


def build(space: NASBench101, architecture: Module) -> Graph:
    """The network of one module, faithful to the reference.

    Source: Ying et al., ICML 2019; google-research/nasbench, nasbench/lib/model_builder.py.
    """
    g = GraphBuilder(space.input_shape)
    x = _conv_bn_relu(g, g.input, CHANNELS[0], kernel=3)
    for stage, channels in enumerate(CHANNELS):
        if stage > 0:
            x = g.max_pool(x, kernel=2, stride=2)
        for _ in range(MODULES_PER_STAGE):
            x = _module(g, x, architecture, channels)
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def vertex_channels(module: Module, out_channels: int) -> list[int]:
    """Return the output channels of the interior vertices; those of vertex v are at index v - 1.

    The vertices that are concatenated share ``out_channels``; if it does not divide evenly, the first ones have one
    more. Any other vertex has as many as the widest vertex that it feeds.

    Example:
        >>> edges = ((0, 1, 1, 1, 0), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 1), (0, 0, 0, 0, 0))
        >>> vertex_channels(Module(edges, ("maxpool3x3",) * 3), 128)
        [43, 43, 42]
    """
    last = len(module.adjacency) - 1
    leaves = [vertex for vertex in range(1, last) if module.adjacency[vertex][last]]
    channels = [0] * last
    for vertex in range(last - 1, 0, -1):
        if vertex in leaves:
            share, rest = divmod(out_channels, len(leaves))
            channels[vertex] = share + (leaves.index(vertex) < rest)
        else:
            channels[vertex] = max(channels[target] for target in range(1, last) if module.adjacency[vertex][target])
    return channels[1:]


def _module(g: GraphBuilder, x: str, module: Module, out_channels: int) -> str:
    last = len(module.adjacency) - 1
    states: dict[int, str] = {}
    for vertex, channels in enumerate(vertex_channels(module, out_channels), start=1):
        operands = [_truncated(g, state, channels) for v, state in states.items() if module.adjacency[v][vertex]]
        if module.adjacency[0][vertex]:
            operands.append(_conv_bn_relu(g, x, channels, kernel=1))
        states[vertex] = _operation(g, module.operations[vertex - 1], g.add(*operands))
    leaves = [state for vertex, state in states.items() if module.adjacency[vertex][last]]
    operands = [g.concat(*leaves) if len(leaves) > 1 else leaves[0]] if leaves else []
    if module.adjacency[0][last]:
        operands.append(_conv_bn_relu(g, x, out_channels, kernel=1))
    return g.add(*operands)


def _truncated(g: GraphBuilder, x: str, channels: int) -> str:
    """Return the first ``channels`` channels; at most one is cut off."""
    return x if g.channels(x) == channels else g.slice(x, axes=(1,), starts=(0,), ends=(channels,))


def _operation(g: GraphBuilder, operation: str, x: str) -> str:
    match operation:
        case "conv3x3-bn-relu":
            return _conv_bn_relu(g, x, g.channels(x), kernel=3)
        case "conv1x1-bn-relu":
            return _conv_bn_relu(g, x, g.channels(x), kernel=1)
        case "maxpool3x3":
            return g.max_pool(x, kernel=3, padding=1)
    raise AssertionError(f"unknown operation {operation}: Module validates them")


def _conv_bn_relu(g: GraphBuilder, x: str, channels: int, *, kernel: int) -> str:
    return g.relu(g.conv_bn(x, channels, kernel=kernel))
