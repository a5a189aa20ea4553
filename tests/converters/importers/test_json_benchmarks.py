"""NDS and NAS-Bench-301: json files built here, none is an original."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from converters.importers import BenchmarkFileError, read_benchmark
from spaces import get_space

GENOTYPE = {
    **{kind: [["sep_conv_3x3", 0], ["skip_connect", 1]] * 4 for kind in ("normal", "reduce")},
    **{f"{kind}_concat": [2, 3, 4, 5] for kind in ("normal", "reduce")},
}
NETWORK = {
    "job_id": 1, "rng_seed": 1, "params": 340_000, "flops": 5e7, "iter_time": 0.05, "min_test_top1": 6.5,
    "net": {"genotype": GENOTYPE, "width": 16, "depth": 8, "aux": True, "drop_prob": 0.1},
    "optim": {"base_lr": 0.1, "wd": 5e-4, "max_ep": 3},
    "train_ep_top1": [40.0, 12.0, 5.0], "test_ep_top1": [50.0, 6.5, 7.0], "train_ep_loss": [2.0, 1.0, 0.5],
}  # fmt: skip
DARTS = "NetworkSelectorDatasetInfo:darts:"
CONFIG = {
    **{
        f"{DARTS}edge_{kind}_{edge}": "sep_conv_3x3"
        for kind in ("normal", "reduce")
        for edge in (0, 1, 2, 3, 5, 7, 10, 11)
    },
    **{f"{DARTS}inputs_node_{kind}_3": "0_1" for kind in ("normal", "reduce")},
    **{f"{DARTS}inputs_node_{kind}_4": "0_2" for kind in ("normal", "reduce")},
    **{f"{DARTS}inputs_node_{kind}_5": "1_2" for kind in ("normal", "reduce")},
    f"{DARTS}init_channels": 32,
    f"{DARTS}layers": 8,
    f"{DARTS}auxiliary": "True",
    "OptimizerSelector:optimizer": "sgd",
    "SimpleLearningrateSchedulerSelector:cosine_annealing:T_max": 100,
}


def result(epochs: int = 100) -> dict[str, Any]:
    config = CONFIG | {"SimpleLearningrateSchedulerSelector:cosine_annealing:T_max": epochs}
    info = [{"val_accuracy": 93.5, "epochs": epochs - 2, "model_parameters": 1_300_000}]
    return {"optimized_hyperparamater_config": config, "info": info, "test_accuracy": 93.25, "runtime": 5000}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("name", ["DARTS.json", "DARTS_fix-w-d.json"])
def test_nds(tmp_path: Path, name: str) -> None:
    frame = read_benchmark("nds", write(tmp_path / name, [NETWORK, NETWORK]))
    space = get_space("nds_darts")
    assert frame["space"].tolist() == ["nds_darts"] * 2
    assert space.format(space.parse(frame["architecture"][0])) == frame["architecture"][0]
    assert json.loads(frame["architecture"][0])["width"] == 16
    assert frame.iloc[0, 2:].to_dict() == {
        "accuracy@cifar10": 93.0,
        "best_accuracy@cifar10": 93.5,
        "test_error_percent@cifar10": 7.0,
        "train_error_percent@cifar10": 5.0,
        "iteration_s@cifar10": 0.05,
        "params": 340_000,
        "macs": 5e7,
    }
    assert set(space.objectives) <= set(frame.columns)


@pytest.mark.parametrize("name", ["DARTS_in.json", "DARTS_lr-wd.json", "ResNet.json", "mine.json"])
def test_nds_files_without_a_space(tmp_path: Path, name: str) -> None:
    with pytest.raises(BenchmarkFileError, match=r"expected Amoeba\.json"):
        read_benchmark("nds", write(tmp_path / name, [NETWORK]))


@pytest.mark.parametrize(
    ("contents", "match"),
    [
        ({"top": []}, "a JSON list of trained networks, got dict"),
        ([], "at least one architecture"),
        ([NETWORK, {}], "record 1: expected 'net' to be dict, got only"),
        ([NETWORK | {"test_ep_top1": []}], "record 0: expected a trained network, got IndexError"),
        (
            [NETWORK | {"test_ep_top1": [50.0, 150.0]}],
            "record 0: expected errors in percent, 0 to 100, in 'test_ep_top1'",
        ),
        ([NETWORK | {"train_ep_top1": [-5.0]}], r"errors in percent, 0 to 100, in 'train_ep_top1', got -5\."),
        ([NETWORK | {"params": 10**400}], "record 0: expected a trained network, got OverflowError"),
        ([NETWORK | {"flops": -1}], r"record 0: expected 'flops' of 0 or more, got -1\."),
        ([NETWORK | {"net": NETWORK["net"] | {"genotype": {}}}], "record 0: expected a trained network"),  # type: ignore[operator]
    ],
)
def test_damaged_nds(tmp_path: Path, contents: Any, match: str) -> None:
    with pytest.raises(BenchmarkFileError, match=match):
        read_benchmark("nds", write(tmp_path / "DARTS.json", contents))


def test_epochs_that_failed_count_as_no_best_one(tmp_path: Path) -> None:
    failed = NETWORK | {"test_ep_top1": [float("nan"), 6.5, 7.0]}
    frame = read_benchmark("nds", write(tmp_path / "DARTS.json", [failed, NETWORK]))
    assert frame["best_accuracy@cifar10"].tolist() == [93.5, 93.5]


def test_truncated_nds(tmp_path: Path) -> None:
    (tmp_path / "ENAS.json").write_text(json.dumps([NETWORK])[:-9])
    with pytest.raises(BenchmarkFileError, match=r"ENAS\.json: expected a JSON list .*downloaded completely"):
        read_benchmark("nds", tmp_path / "ENAS.json")


def test_nasbench301(tmp_path: Path) -> None:
    write(tmp_path / "run" / "results_fidelity_0" / "results_0.json", result())
    write(tmp_path / "run" / "results_fidelity_0" / "results_1.json", result(50))
    write(tmp_path / "run" / "notes.json", {})
    frame = read_benchmark("nasbench301", tmp_path)
    space = get_space("darts")
    assert frame["architecture"].tolist() == [space.format(space.parse(json.dumps(CONFIG)))] * 2
    assert frame["valid_accuracy@cifar10"].dropna().tolist() == [93.5]
    assert frame["accuracy@cifar10"].dropna().tolist() == [93.25]
    assert frame["accuracy_50ep@cifar10"].dropna().tolist() == [93.25]
    assert frame["train_time_s@nasbench301"].dropna().tolist() == [5000]
    assert frame["params_with_aux"].tolist() == [1_300_000] * 2


def test_nasbench301_one_file_and_zip(tmp_path: Path) -> None:
    single = write(tmp_path / "results_3.json", result())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(single, "nb_301/rs/results_3.json")
        archive.writestr("nb_301/README", "text")
    one, zipped = (read_benchmark("nasbench301", path) for path in (single, tmp_path / "a.zip"))
    assert one.equals(zipped)
    assert len(one) == 1


@pytest.mark.parametrize("key", ["info", "optimized_hyperparamater_config"])
def test_damaged_nasbench301(tmp_path: Path, key: str) -> None:
    path = write(tmp_path / "results_0.json", result() | {key: 1})
    with pytest.raises(BenchmarkFileError, match=rf"results_0\.json: expected '{key}' to be"):
        read_benchmark("nasbench301", path)


@pytest.mark.parametrize(
    ("accuracy", "got"),
    [
        ("93%", r"numbers in column accuracy@cifar10, got '93%' in row 1\."),
        ([93.25], r"numbers in column accuracy@cifar10, got \[93\.25\] in row 1\."),
        (float("inf"), r"empty values or finite numbers in column accuracy@cifar10, got inf in row 1\."),
        (10**400, "numbers in column accuracy@cifar10, got OverflowError"),
    ],
)
def test_labels_of_nasbench301_are_numbers(tmp_path: Path, accuracy: object, got: str) -> None:
    write(tmp_path / "results_0.json", result())
    write(tmp_path / "results_1.json", result() | {"test_accuracy": accuracy})
    with pytest.raises(BenchmarkFileError, match=rf"{tmp_path.name}: expected {got}.* Is it the right file"):
        read_benchmark("nasbench301", tmp_path)


def test_accuracies_that_look_like_fractions_are_told(tmp_path: Path) -> None:
    write(tmp_path / "results_0.json", result() | {"test_accuracy": 0.9325})
    with pytest.warns(
        UserWarning, match=r"percent, 0 to 100, in column accuracy@cifar10, got none above 0\.9325"
    ) as told:
        read_benchmark("nasbench301", tmp_path)
    assert len(told) == 1  # of validation accuracies, which are percent, nothing


def test_nothing_of_nasbench301(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkFileError, match="at least one architecture"):
        read_benchmark("nasbench301", tmp_path)
