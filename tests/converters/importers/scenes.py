"""Small files of exactly the published structures, built here: none of them is an original."""

import base64
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nas_201_api import ArchResults, ResultsCount

from converters.importers.tfrecord import crc32c, mask
from spaces.nasbench201 import NASBench201

CELL_0 = "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|"
SPLITS = {"cifar10-valid": ("x-valid", "ori-test"), "cifar10": ("ori-test",)}
OTHER_SPLITS = ("ori-test", "x-valid", "x-test")
FIRST_INDICES = [NASBench201().format(NASBench201().from_official_index(index)) for index in range(3)]


def nasbench201_state(epochs: int, seeds: Sequence[int], runs: Sequence[str], latency: list[float] | None) -> Any:
    """An ArchResults as the benchmark's own library saves it: accuracies are 50 + seed + position of the split."""
    results = ArchResults(0, CELL_0)
    for run in runs:
        for seed in seeds:
            trial = ResultsCount(run, None, {}, {}, 0.129306, 15.64737, {"arch_str": CELL_0}, seed, epochs, latency)
            splits = SPLITS.get(run, OTHER_SPLITS)
            keys = {f"{split}@{epoch}": (split, epoch) for split in splits for epoch in range(epochs)}
            accuracies = {
                key: 50.0 + seed + splits.index(split) if epoch == epochs - 1 else 1.0
                for key, (split, epoch) in keys.items()
            }
            trial.update_train_info({}, {}, {}, dict.fromkeys(range(epochs), 1.0))
            trial.update_eval(accuracies, accuracies, dict.fromkeys(keys, 1.0))
            results.update(run, seed, trial)
    return results.state_dict()


def nasbench201_states() -> dict[str, Any]:
    """12 epochs of one seed, 200 epochs of two, as many architectures have them."""
    runs = ("cifar10-valid", "cifar10", "cifar100", "ImageNet16-120")
    return {
        "12": nasbench201_state(12, [7], runs[:1], None),
        "200": nasbench201_state(200, [1, 4], runs, [0.010, 0.012]),
    }


def nasbench101_record(key: str, epochs: int, adjacency: str, operations: str, metrics: bytes) -> bytes:
    """One run, as the published file spells it."""
    return json.dumps([key, epochs, adjacency, operations, base64.b64encode(metrics).decode()]).encode()


def model_metrics(params: int, final: tuple[float, float, float, float], evaluations: int = 3) -> bytes:
    """A ModelMetrics message. ``final``: training time, then train, validation and test accuracy at the end."""
    message = b""
    for index in range(evaluations):
        values = final if index == evaluations - 1 else (0.0, 0.1, 0.1, 0.1)
        numbered = enumerate((54.0 * index, *values), start=1)
        data = b"".join(bytes([number << 3 | 1]) + struct.pack("<d", value) for number, value in numbered)
        data += b"\x32\x04/tmp"  # checkpoint_path
        message += b"\x0a" + bytes([len(data)]) + data
    return message + b"\x10" + _varint(params) + b"\x19" + struct.pack("<d", 99.0)


def _varint(value: int) -> bytes:
    low = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([byte | 0x80 for byte in low[:-1]] + low[-1:])


def write_tfrecord(path: Path, records: Sequence[bytes]) -> None:
    """A TFRecord file."""
    with path.open("wb") as stream:
        for data in records:
            length = struct.pack("<Q", len(data))
            for part in (length, data):
                stream.write(part + struct.pack("<I", int(mask(crc32c([part]))[0])))
