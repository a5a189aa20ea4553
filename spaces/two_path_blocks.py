"""Paths of Two-Path networks: sequences of blocks, and the layers that the blocks consist of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from spaces.sequences import Operations, Sequences
from spaces.shown import shown
from spaces.space import ArchitectureError

CONVOLUTIONS = (
    *("conv3x3", "double3x3", "conv5x5", "bottleneck-r2-k3", "bottleneck-r4-k3", "bottleneck-e2-k3"),
    *("inception_s3x3", "inception_s5x5"),
)
SUPPLEMENTARY = ("conv1x1", "bottleneck-r2-k1", "bottleneck-e2-k1", "avgpool3x3", "maxpool3x3")
BLOCKS = Sequences("two_path", CONVOLUTIONS, SUPPLEMENTARY, max_length=3)
NUM_REDUCTIONS = 2
MAX_BLOCKS = 4
STEM_CHANNELS = 32
# All combinations of the number of blocks of a path and the positions of its reductions.
LAYOUTS = tuple(
    (length, reductions)
    for length in range(NUM_REDUCTIONS, MAX_BLOCKS + 1)
    for reductions in combinations(range(length), NUM_REDUCTIONS)
)


class Layer(NamedTuple):
    """A convolution with batch norm and ReLU6, or a pool with batch norm.

    Attributes:
        kind: conv, avgpool or maxpool.
        kernel: height and width.
        channels: output channels.
        stride: stride in both directions.
    """

    kind: str
    kernel: tuple[int, int]
    channels: int
    stride: int = 1


class BlockLayers(NamedTuple):
    """The layers of a block, and whether the block's input is added to their output."""

    layers: tuple[Layer, ...]
    residual: bool


@dataclass(frozen=True)
class BlockPath:
    """A sequence of blocks.

    Attributes:
        blocks: the operations of each block.
        reductions: positions of the two blocks that halve the resolution and double the channels.
    """

    blocks: tuple[Operations, ...]
    reductions: tuple[int, ...]

    def __post_init__(self) -> None:
        if (len(self.blocks), self.reductions) not in LAYOUTS:
            raise ArchitectureError(
                f"two_path path: expected {NUM_REDUCTIONS} to {MAX_BLOCKS} blocks and {NUM_REDUCTIONS} of them, "
                f"ascending, as reductions, got {len(self.blocks)} and {shown(list(self.reductions))}. "
                "See LAYOUTS in spaces/two_path_blocks.py."
            )
        for position, operations in enumerate(self.blocks):
            BLOCKS.check(operations, f"block {position}")

    def layers(self) -> Iterator[BlockLayers]:
        """Yield the layers of every block; the first convolution of a block changes channels and resolution."""
        channels = STEM_CHANNELS
        for position, operations in enumerate(self.blocks):
            reduces = position in self.reductions
            layers: list[Layer] = []
            out_channels, stride = (2 * channels, 2) if reduces else (channels, 1)
            for operation in operations:
                if operation in CONVOLUTIONS:
                    layers += _layers(operation, channels, out_channels, stride)
                    channels, stride = out_channels, 1
                else:
                    layers += _layers(operation, channels, channels, 1)
            yield BlockLayers(tuple(layers), residual=not reduces)


def spell_path(path: BlockPath) -> str:
    """Return the layers as text, equal only for equal layers; those of a block with a residual are in brackets."""
    spelled: list[str] = []
    for layers, residual in path.layers():
        names = [f"{kind}{height}x{width}:{channels}/{stride}" for kind, (height, width), channels, stride in layers]
        spelled += [f"[{' '.join(names)}]"] if residual else names
    return " ".join(spelled)


def _layers(operation: str, channels: int, out_channels: int, stride: int) -> list[Layer]:
    size = int(operation[-1])
    if operation.startswith("bottleneck"):
        _, change, _ = operation.split("-")  # such as r2, reduced to half, or e2, expanded to twice
        hidden = channels // int(change[1:]) if change[0] == "r" else channels * int(change[1:])
        return [Layer("conv", (size, size), hidden, stride), Layer("conv", (size, size), out_channels)]
    kind = operation.removesuffix(f"{size}x{size}")
    if kind == "double":
        return [Layer("conv", (size, size), channels, stride), Layer("conv", (size, size), out_channels)]
    if kind == "inception_s":
        return [Layer("conv", (1, size), out_channels, stride), Layer("conv", (size, 1), out_channels)]
    return [Layer(kind, (size, size), out_channels, stride)]
