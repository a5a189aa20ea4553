"""Importer of the FBNet part of HW-NAS-Bench's pickle: tables of block costs, which sum to the cost of a network.

Source:
    GATECH-EIC/HW-NAS-Bench, hw_nas_bench_api/hw_nas_bench_api.py: ``contents["fbnet"][metric]`` is a dictionary from
    the name of a block at its position to its cost; names and strides are those of fbnet_get_metrics there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from converters.fbnet import SETTINGS, STAGE_CHANNELS, STEM_CHANNELS
from converters.importers.hwnasbench import METRICS
from converters.importers.pickles import read_pickle
from converters.importers.reading import BenchmarkFileError, field, reading
from converters.importers.table import to_table
from spaces.fbnet import DATASETS, FBNet, Layers, block_settings

NUM_SAMPLES = 5000  # networks to sample, of 9^22 for each data set, since the file has blocks and not networks


def read(path: Path, *, progress: bool = False, num_samples: int = NUM_SAMPLES) -> pd.DataFrame:
    """Return a table with the costs of networks sampled from the space, half for each data set.

    ``cost`` gives the cost of any other network.

    Args:
        path: HW-NAS-Bench-v1_0.pickle.
        progress: show a bar on stderr.
        num_samples: number of different networks; the sample is the same each time.

    Raises:
        BenchmarkFileError: the file is damaged or of another kind, or it is a pickle with more than data.
    """
    tables = read_lookup(path)
    space, rng = FBNet(), np.random.default_rng(0)
    spaces = [FBNet(dataset=name) for name in DATASETS]
    drawn: dict[Layers, None] = {}
    while len(drawn) < num_samples:
        drawn[spaces[len(drawn) % len(spaces)].sample(rng)] = None
    rows = []
    for layers in tqdm(drawn, desc="hwnasbench-fbnet", unit="network", disable=not progress):
        with reading(f"{path}, network {space.format(layers)}", "the cost of each block"):
            costs = {label: cost(table, layers) for label, table in tables.items()}
            rows.append({"architecture": space.format(layers), **costs})
    return to_table(FBNet.name, rows, path)


def read_lookup(path: Path) -> dict[str, dict[str, float]]:
    """Return for each label the cost of every block at every position.

    Raises:
        BenchmarkFileError: as ``read``.
    """
    contents = field(read_pickle(path), FBNet.name, dict, path)
    tables = {label: contents[metric] for metric, label in METRICS.items() if metric in contents}
    if not tables or not all(isinstance(table, dict) for table in tables.values()):
        got = sorted(map(str, contents))[:8]
        raise BenchmarkFileError(f"{path}: expected a dictionary for every metric, got {got}.")
    return tables


def cost(table: Mapping[str, Any], layers: Layers) -> float:
    """Return the cost of a network: the sum over stem, blocks, header, pooling and classifier.

    Raises:
        KeyError: the table lacks a block.
    """
    return sum(float(table[block]) for block in blocks(layers))


def blocks(layers: Layers) -> Iterator[str]:
    """Yield the name in the tables of every part of a network, from input to output."""
    network = SETTINGS[layers.dataset]
    size, channels = network.resolution, STEM_CHANNELS
    yield _spell("ConvNorm", size, 3, channels, kernel=3, stride=network.stem_stride, group=1)
    size //= network.stem_stride
    for stage, out_channels, first_stride in zip(layers.stages(), STAGE_CHANNELS, network.stage_strides, strict=True):
        for position, operation in enumerate(stage):
            stride = first_stride if position == 0 else 1
            yield _block(operation, size, channels, out_channels, stride)
            size, channels = size // stride, out_channels
    yield _spell("ConvNorm", size, channels, network.header_channels, kernel=1, stride=1, group=1)
    yield _spell("AvgP", size, network.header_channels, network.header_channels, kernel=size, stride=1)
    yield f"FC_Cin{network.header_channels}_Cout{network.num_classes}"


def _block(operation: str, size: int, channels: int, out_channels: int, stride: int) -> str:
    if operation == "skip":
        return _spell("Skip", size, channels, out_channels, stride=stride)
    kernel, expansion, group = block_settings(operation)
    return _spell("ConvBlock", size, channels, out_channels, exp=expansion, kernel=kernel, stride=stride, group=group)


def _spell(kind: str, size: int, channels: int, out_channels: int, **settings: int) -> str:
    ending = "".join(f"_{name}{value}" for name, value in settings.items())
    return f"{kind}_H{size}_W{size}_Cin{channels}_Cout{out_channels}{ending}"
