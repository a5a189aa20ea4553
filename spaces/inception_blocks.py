"""Blocks of Inception networks: parallel paths of operations, and the channels along the paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from spaces.sequences import Operations, Sequences
from spaces.shown import shown
from spaces.space import ArchitectureError

CONVOLUTIONS = (
    *("conv3x3", "inception_s3x3", "inception_p3x3", "depthwise3x3"),
    *("conv5x5", "depthwise5x5", "inception_s5x5", "inception_p5x5"),
)
SUPPLEMENTARY = ("conv1x1", "avgpool3x3", "maxpool3x3", "double1x1")
RESIZING = (*CONVOLUTIONS, "conv1x1", "double1x1")  # operations that can change the number of channels
SEQUENCES = Sequences("inception", CONVOLUTIONS, SUPPLEMENTARY, max_length=4)
STAGE_CHANNELS = (32, 64, 128, 256)
MIN_CHANNELS = 16
MIN_BLOCKS, MAX_BLOCKS = 2, 6
MAX_PATHS = 4
MAX_OPERATIONS = {1: 3, 2: 4, 3: 8, 4: 10}  # maximum number of operations of a block, by its number of paths
MIN_LENGTHS = {1: 1, 2: 1, 3: 2, 4: 2}  # minimum number of operations of each path, by the number of paths
# All combinations of lengths that the paths of a block can have.
LAYOUTS = tuple(
    lengths
    for num_paths, maximum in MAX_OPERATIONS.items()
    for lengths in product(range(MIN_LENGTHS[num_paths], SEQUENCES.max_length + 1), repeat=num_paths)
    if sum(lengths) <= maximum
)


class Step(NamedTuple):
    """One operation of a path, with its output channels and stride."""

    operation: str
    channels: int
    stride: int


@dataclass(frozen=True)
class BlockPath:
    """One path of a block.

    Attributes:
        operations: the operations in order.
        internal: channels from the first operation of RESIZING to the last.
        out: output channels of the path.
    """

    operations: Operations
    internal: int
    out: int

    def steps(self, in_channels: int, stride: int) -> Iterator[Step]:
        """Yield the operations in a block of this stride, which the first convolution has.

        Source: InceptionBlock._build_path in GENNAPE, model_src/search_space/inception/block.py.
        """
        resizing = [position for position, name in enumerate(self.operations) if name in RESIZING]
        strided = next(position for position, name in enumerate(self.operations) if name in CONVOLUTIONS)
        channels = in_channels
        for position, operation in enumerate(self.operations):
            if position == resizing[0]:
                channels = self.internal
            elif position == resizing[-1]:
                channels = self.out
            yield Step(operation, channels, stride if position == strided else 1)


@dataclass(frozen=True)
class Stage:
    """A sequence of equal blocks; the first one changes channels and resolution to those of the stage.

    Attributes:
        paths: the 1 to 4 paths of every block; their order is that of the notation and has no effect.
        num_blocks: number of blocks.
    """

    paths: tuple[BlockPath, ...]
    num_blocks: int


@lru_cache(maxsize=1 << 12)
def check_stage(stage: Stage, number: int) -> None:
    """Check that a stage is valid at position ``number``, counted from 0.

    Raises:
        ArchitectureError: it is not; the message names the path.
    """
    if not MIN_BLOCKS <= stage.num_blocks <= MAX_BLOCKS:
        raise _error(f"{MIN_BLOCKS} to {MAX_BLOCKS} blocks", stage.num_blocks, f"stage {number}")
    lengths = tuple(len(path.operations) for path in stage.paths)
    if lengths not in LAYOUTS:
        raise _error("paths of lengths that LAYOUTS lists", list(lengths), f"stage {number}")
    widths = path_widths(STAGE_CHANNELS[number], len(stage.paths))
    if sorted(path.out for path in stage.paths) != sorted(widths):
        raise _error(f"paths of {list(widths)} channels", [path.out for path in stage.paths], f"stage {number}")
    for position, path in enumerate(stage.paths):
        SEQUENCES.check(path.operations, f"stage {number} path {position}")
        choices = internal_choices(path.operations, path.out)
        if path.internal not in choices:
            wanted = f"C_internal of {' or '.join(map(str, sorted(set(choices))))}"
            raise _error(wanted, path.internal, f"stage {number} path {position}")


def stage_stride(number: int) -> int:
    """Return the stride of the first block of a stage."""
    return 2 if number else 1


def path_widths(channels: int, num_paths: int, widest: int = 0) -> tuple[int, ...]:
    """Return the output channels of the paths of a block: equal parts, or for three paths one half and two quarters."""
    if num_paths != 3:
        return (max(channels // num_paths, MIN_CHANNELS),) * num_paths
    return tuple(max(channels // (2 if path == widest else 4), MIN_CHANNELS) for path in range(num_paths))


@lru_cache(maxsize=1 << 14)
def internal_choices(operations: Operations, out: int) -> tuple[int, int, int]:
    """Return the internal channels that a path can have: its output channels, half or twice as many.

    All three are equal if the path has fewer than two operations of RESIZING.
    """
    if sum(operation in RESIZING for operation in operations) < 2:
        return out, out, out
    return out, max(out // 2, MIN_CHANNELS), 2 * out


def _error(expected: str, got: object, where: str) -> ArchitectureError:
    return ArchitectureError(
        f"inception network: expected {expected}, got {shown(got)} in {where}. See spaces/inception_blocks.py."
    )
