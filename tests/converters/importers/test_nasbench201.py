"""NAS-Bench-201 and NATS-Bench: files built with the benchmark's own classes; none is an original."""

import bz2
import math
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from converters.importers import BenchmarkFileError, read_benchmark
from tests.converters.importers.scenes import FIRST_INDICES, nasbench201_states

EXPECTED = {
    "accuracy@cifar10": 52.5,
    "valid_accuracy@cifar10": 52.5,
    "accuracy@cifar100": 54.5,
    "valid_accuracy@cifar100": 53.5,
    "accuracy@imagenet16-120": 54.5,
    "valid_accuracy@imagenet16-120": 53.5,
    "valid_accuracy_12ep@cifar10": 57.0,
    "latency_ms@gpu_256": 11.0,
    "params": 129306,
    "macs": 15_647_360,
}


def pth_contents() -> dict[str, Any]:
    states = {index: nasbench201_states() for index in (0, 2)}
    infos = {index: {"less": found["12"], "full": found["200"]} for index, found in states.items()}
    return {"meta_archs": FIRST_INDICES, "total_archs": 3, "arch2infos": infos, "evaluated_indexes": {0, 2}}


def nats_contents() -> dict[str, Any]:
    return pth_contents() | {"arch2infos": dict.fromkeys((0, 2), nasbench201_states())}


def check(frame: pd.DataFrame) -> None:
    assert list(frame.columns[:3]) == ["space", "architecture", "index"]
    assert frame["space"].tolist() == ["nasbench201"] * 2
    assert frame["architecture"].tolist() == [FIRST_INDICES[0], FIRST_INDICES[2]]
    assert frame["index"].tolist() == [0, 2]
    assert frame.iloc[0][list(EXPECTED)].to_dict() == pytest.approx(EXPECTED)
    assert len(frame.columns) == 3 + len(EXPECTED)


def write_nats(path: Path, value: Any) -> None:
    path.write_bytes(bz2.compress(pickle.dumps(value, 4)))


@pytest.mark.parametrize("zipped", [False, True])
def test_pth(tmp_path: Path, zipped: bool) -> None:
    torch.save(pth_contents(), tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    check(read_benchmark("nasbench201", tmp_path / "a.pth"))


def test_nats_file(tmp_path: Path) -> None:
    write_nats(tmp_path / "a.pickle.pbz2", nats_contents())
    check(read_benchmark("natsbench", tmp_path / "a.pickle.pbz2"))


def test_nats_folder(tmp_path: Path) -> None:
    write_nats(tmp_path / "meta.pickle.pbz2", {"meta_archs": FIRST_INDICES, "total_archs": 3})
    for index in (0, 2):
        write_nats(tmp_path / f"{index:06d}.pickle.pbz2", nasbench201_states())
    check(read_benchmark("natsbench", tmp_path))


def test_what_was_not_run_is_missing(tmp_path: Path) -> None:
    contents = pth_contents()
    full = contents["arch2infos"][0]["full"] = dict(nasbench201_states()["200"])
    full["dataset_seed"] = {"cifar10": [1]}
    torch.save(contents, tmp_path / "a.pth")
    first = read_benchmark("nasbench201", tmp_path / "a.pth").iloc[0]
    assert first["accuracy@cifar10"] == 51.0
    assert math.isnan(first["accuracy@cifar100"])


def test_damaged_results_name_the_architecture(tmp_path: Path) -> None:
    contents = pth_contents()
    contents["arch2infos"][2] = {"less": 1}
    torch.save(contents, tmp_path / "a.pth")
    with pytest.raises(BenchmarkFileError, match="architecture 2: expected results of 12 and 200 epochs, got KeyError"):
        read_benchmark("nasbench201", tmp_path / "a.pth")


@pytest.mark.parametrize("contents", [{}, [1], {"meta_archs": [], "arch2infos": []}])
def test_another_kind_of_file(tmp_path: Path, contents: Any) -> None:
    torch.save(contents, tmp_path / "a.pth")
    with pytest.raises(BenchmarkFileError, match=r"a\.pth: expected .*Is it the right file"):
        read_benchmark("nasbench201", tmp_path / "a.pth")


@pytest.mark.parametrize("keys", [(0, "2"), (-1, 0), (None, 0)])
def test_results_are_by_number(tmp_path: Path, keys: tuple[Any, Any]) -> None:
    contents = pth_contents() | {"arch2infos": dict.fromkeys(keys, nasbench201_states())}
    torch.save(contents, tmp_path / "a.pth")
    write_nats(tmp_path / "a.pickle.pbz2", contents)
    for name, path in (("nasbench201", tmp_path / "a.pth"), ("natsbench", tmp_path / "a.pickle.pbz2")):
        with pytest.raises(BenchmarkFileError, match=r"expected architectures by number, got ('2'|-1|None)"):
            read_benchmark(name, path)


def test_the_size_space_is_another(tmp_path: Path) -> None:
    write_nats(tmp_path / "a.pickle.pbz2", {"meta_archs": ["8:8:8:8:8"], "arch2infos": {}})
    with pytest.raises(BenchmarkFileError, match="topology space"):
        read_benchmark("natsbench", tmp_path / "a.pickle.pbz2")
    with pytest.raises(BenchmarkFileError, match=r"expected meta\.pickle\.pbz2 inside"):
        read_benchmark("natsbench", tmp_path)
