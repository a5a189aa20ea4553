"""HW-NAS-Bench: pickles built here, none is an original."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.importers import BenchmarkFileError, hwnasbench_fbnet, read_benchmark
from converters.importers.hwnasbench import DATASETS, METRICS
from spaces.fbnet import OPERATIONS, FBNet
from tests.converters.importers.scenes import FIRST_INDICES

FBNET_METRICS = [metric for metric in METRICS if "edgetpu" not in metric and "intensity" not in metric]


def cells(configs: list[str] = FIRST_INDICES) -> dict[str, Any]:
    metrics = {metric: np.arange(3.0) + position for position, metric in enumerate(METRICS)}
    return {dataset: {**metrics, "config": [{"arch_str": name} for name in configs]} for dataset in DATASETS}


def lookup() -> dict[str, float]:
    """Every block of every network that uses one operation throughout, by length of its name."""
    space = FBNet()
    uniform = [space.decode((dataset, *[choice] * 22)) for dataset in (0, 1) for choice in range(len(OPERATIONS))]
    return {block: float(len(block)) for layers in uniform for block in hwnasbench_fbnet.blocks(layers)}


def write(path: Path, contents: Any) -> Path:
    path.write_bytes(pickle.dumps(contents))
    return path


def test_cells(tmp_path: Path) -> None:
    frame = read_benchmark("hwnasbench", write(tmp_path / "a.pickle", {"nasbench201": cells(), "fbnet": {}}))
    assert frame["architecture"].tolist() == FIRST_INDICES
    assert frame["index"].tolist() == [0, 1, 2]
    assert len(frame.columns) == 3 + 3 * len(METRICS)
    assert math.isnan(frame["latency_ms@edgegpu"][0])  # 0 is no latency
    assert frame["latency_ms@edgegpu"][2] == 2.0
    assert frame["energy_mj@fpga_imagenet16-120"][1] == 9.0


def test_lists_are_as_good_as_arrays_and_configs_may_be_absent(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", {"nasbench201": {"cifar10": {"pixel3_latency": [1.0, 2.0]}}})
    frame = read_benchmark("hwnasbench", path)
    assert list(frame.columns) == ["space", "architecture", "index", "latency_ms@pixel3"]


def test_configs_must_agree_with_the_official_index(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", {"nasbench201": cells([FIRST_INDICES[1]] * 3)})
    with pytest.raises(BenchmarkFileError, match=r"architecture 0: expected .* where NAS-Bench-201 has"):
        read_benchmark("hwnasbench", path)


@pytest.mark.parametrize(
    "contents",
    [
        [],
        {"fbnet": {}},
        {"nasbench201": {}},
        {"nasbench201": {"cifar10": []}},
        {"nasbench201": {"cifar10": {"pixel3_latency": 1.0}}},
        {"nasbench201": {"cifar10": {"pixel3_latency": np.array(1.0)}}},
        {"nasbench201": {"cifar10": {}, "pixel3": {}}},
        {"nasbench201": {1: {}, "pixel3": {}}},
    ],
)
def test_another_kind_of_file(tmp_path: Path, contents: Any) -> None:
    with pytest.raises(BenchmarkFileError, match=r"a\.pickle: expected"):
        read_benchmark("hwnasbench", write(tmp_path / "a.pickle", contents))


def test_blocks_are_spelled_as_published() -> None:
    """Spellings and sizes worked out by hand from the paper's table and the published names."""
    fbnet_c = '{"dataset": "ImageNet", "op_idx_list": [0,3,8,0,0,7,6,7,3,7,6,7,7,7,7,7,6,7,7,7,7,3]}'
    spelled = list(hwnasbench_fbnet.blocks(FBNet().parse(fbnet_c)))
    assert len(spelled) == 1 + 22 + 3
    assert spelled[0] == "ConvNorm_H224_W224_Cin3_Cout16_kernel3_stride2_group1"
    assert spelled[1] == "ConvBlock_H112_W112_Cin16_Cout16_exp1_kernel3_stride1_group1"
    assert spelled[2] == "ConvBlock_H112_W112_Cin16_Cout24_exp6_kernel3_stride2_group1"
    assert spelled[3] == "Skip_H56_W56_Cin24_Cout24_stride1"
    assert spelled[22] == "ConvBlock_H7_W7_Cin184_Cout352_exp6_kernel3_stride1_group1"
    assert spelled[23:] == [
        "ConvNorm_H7_W7_Cin352_Cout1984_kernel1_stride1_group1",
        "AvgP_H7_W7_Cin1984_Cout1984_kernel7_stride1",
        "FC_Cin1984_Cout1000",
    ]
    grouped = FBNet().decode((0, *[OPERATIONS.index("k5_e1_g2")] * 22))
    assert list(hwnasbench_fbnet.blocks(grouped))[1].endswith("_exp1_kernel5_stride1_group2")


def test_networks(tmp_path: Path) -> None:
    contents = {"nasbench201": {}, "fbnet": dict.fromkeys(FBNET_METRICS, lookup())}
    frame = hwnasbench_fbnet.read(write(tmp_path / "a.pickle", contents), num_samples=20)
    assert frame["architecture"].str.contains("ImageNet").sum() == 10
    assert len(set(frame["architecture"])) == 20
    assert len(frame.columns) == 2 + len(FBNET_METRICS)
    layers = FBNet().parse(frame["architecture"][3])
    assert frame["energy_mj@edgegpu"][3] == sum(map(len, hwnasbench_fbnet.blocks(layers)))


def test_a_block_that_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pickle", {"fbnet": {"pixel3_latency": {"FC_Cin1504_Cout100": 1.0}}})
    with pytest.raises(BenchmarkFileError, match="the cost of each block, got KeyError 'ConvNorm_H"):
        read_benchmark("hwnasbench-fbnet", path)
