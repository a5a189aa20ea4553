"""Graphs of NAS-Bench-201: stem, three stages of five cells, with residual reductions between the stages."""

from __future__ import annotations

from converters.builder import GraphBuilder
from converters.graph import Graph
from spaces.nasbench201 import NUM_NODES, Cell, NASBench201

CELLS_PER_STAGE = 5
CHANNELS = (16, 32, 64)


def build(space: NASBench201, architecture: Cell) -> Graph:
    """The network of one cell, faithful to the reference: batch norms, ``none`` edges and skip connections included.

    Source: Dong & Yang, ICLR 2020; D-X-Y/AutoDL-Projects, cell_infers/tiny_network.py.
    """
    g = GraphBuilder(space.input_shape)
    x = g.conv_bn(g.input, CHANNELS[0], kernel=3)
    for stage, channels in enumerate(CHANNELS):
        if stage > 0:
            x = _reduction(g, x, channels)
        for _ in range(CELLS_PER_STAGE):
            x = _cell(g, x, architecture)
    x = g.relu(g.batch_norm(x))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def _cell(g: GraphBuilder, x: str, architecture: Cell) -> str:
    states = [x]
    for node in range(1, NUM_NODES):
        edges = architecture.inputs(node)
        states.append(g.add(*[_operation(g, operation, states[source]) for operation, source in edges]))
    return states[-1]


def _operation(g: GraphBuilder, operation: str, x: str) -> str:
    match operation:
        case "none":
            return g.zero(x)
        case "skip_connect":
            return g.identity(x)
        case "nor_conv_1x1":
            return g.relu_conv_bn(x, g.channels(x), kernel=1)
        case "nor_conv_3x3":
            return g.relu_conv_bn(x, g.channels(x), kernel=3)
        case "avg_pool_3x3":
            return g.average_pool(x, kernel=3, padding=1)
    raise AssertionError(f"unknown operation {operation}: NASBench201 validates cells")


def _reduction(g: GraphBuilder, x: str, channels: int) -> str:
    main = g.relu_conv_bn(x, channels, kernel=3, stride=2)
    main = g.relu_conv_bn(main, channels, kernel=3)
    shortcut = g.conv(g.average_pool(x, kernel=2, stride=2), channels, kernel=1)
    return g.add(main, shortcut)
