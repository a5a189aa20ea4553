"""Graphs of Accel-NASBench's MnasNet space: stem, seven blocks of inverted residuals, header."""

from __future__ import annotations

from functools import partial

from converters.builder import GraphBuilder
from converters.graph import Graph
from converters.mobile import Operation, make_divisible, mbconv, squeeze_excite
from spaces.mnasnet import Block, MnasNet, Network

STEM_CHANNELS = 32
BLOCK_CHANNELS = (16, 24, 40, 80, 112, 192, 320)
BLOCK_STRIDES = (1, 2, 2, 2, 1, 2, 1)
HEADER_CHANNELS = 1280
SQUEEZE = 4  # input channels of a layer divided by the channels inside its squeeze and excitation
ACTIVATIONS = {"silu": GraphBuilder.silu, "relu": GraphBuilder.relu}
GATES = {"silu": GraphBuilder.sigmoid, "relu": GraphBuilder.hard_sigmoid}


def build(space: MnasNet, architecture: Network) -> Graph:
    """The network of seven blocks, faithful to the reference.

    Source: afzalxo/ANB-DatasetCollection 08a6baa, models/accelbenchnet.py.
    """
    activation, gate = ACTIVATIONS[space.activation], GATES[space.activation]
    g = GraphBuilder(space.input_shape)
    x = activation(g, g.conv_bn(g.input, STEM_CHANNELS, kernel=3, stride=2))
    for block, channels, stride in zip(architecture.blocks, BLOCK_CHANNELS, BLOCK_STRIDES, strict=True):
        for layer in range(block.num_layers):
            x = _layer(g, x, block, channels, 1 if layer else stride, activation, gate)
    x = activation(g, g.conv_bn(x, HEADER_CHANNELS, kernel=1))
    return g.build(g.linear(g.flatten(g.global_average_pool(x)), space.num_classes))


def _layer(
    g: GraphBuilder, x: str, block: Block, channels: int, stride: int, activation: Operation, gate: Operation
) -> str:
    in_channels = g.channels(x)
    mid_channels = make_divisible(in_channels * block.expansion)
    squeezed_channels = max(1, in_channels // SQUEEZE)
    attention = partial(squeeze_excite, squeezed_channels=squeezed_channels, activation=activation, gate=gate)
    return mbconv(
        g,
        x,
        channels,
        mid_channels=mid_channels,
        kernel=block.kernel,
        stride=stride,
        activation=activation,
        expand=mid_channels != in_channels,
        attention=attention if block.squeeze_excite else None,
    )
