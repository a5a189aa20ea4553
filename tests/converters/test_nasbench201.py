"""NAS-Bench-201: counts of the reference, one text per network, texts that run."""

from pathlib import Path

import numpy as np
import pytest

from converters import measure_latencies, model_to_onnx_text, statistics, to_graph, to_model, to_onnx_text
from converters.text import parse, print_model
from spaces.nasbench201 import Cell, NASBench201
from tests.converters.golden import run
from tests.converters.twins import bypassed, mirrored
from tests.spaces.contract import read_goldens, rng

TEXTS = Path(__file__).parents[1] / "goldens" / "texts"
SPACE = NASBench201()
DEGENERATE = {
    "all_none": (0, 0, 0, 0, 0, 0),  # the logits do not depend on the input
    "all_skip": (1, 1, 1, 1, 1, 1),
    "convolution_of_zero": (0, 0, 3, 1, 2, 0),  # a constant, and the input
    "constant": (0, 3, 0, 0, 0, 4),
    "only_constants": (0, 0, 2, 0, 3, 0),
}
GOLDEN_CELLS = {"example": (3, 3, 3, 1, 3, 2), "all_convolutions": (3,) * 6, "all_pools": (4,) * 6} | {
    name: DEGENERATE[name] for name in ("all_none", "all_skip", "convolution_of_zero")
}
SAMPLE = [SPACE.sample(rng(seed)) for seed in range(300)]


def twins(cell: Cell) -> list[Cell]:
    unlinked = Cell((*cell.operations[:2], "none", *cell.operations[3:]))
    copying = Cell(("skip_connect", *cell.operations[1:]))
    return [unlinked, mirrored(unlinked), copying, bypassed(copying)]


def write_goldens() -> None:
    """Write the golden texts anew, when they are meant to change."""
    TEXTS.mkdir(exist_ok=True)
    for name, genotype in GOLDEN_CELLS.items():
        (TEXTS / f"nasbench201_{name}.onnxtxt").write_text(to_onnx_text(SPACE, SPACE.decode(genotype)))


def check_one_text_per_key(cells: list[Cell]) -> int:
    """Texts and keys tell the same cells apart; the number of different ones."""
    pairs = {(SPACE.architecture_key(cell), to_onnx_text(SPACE, cell)) for cell in cells}
    keys, texts = zip(*pairs, strict=True)
    assert len(pairs) == len(set(keys)) == len(set(texts))
    return len(pairs)


@pytest.mark.parametrize(
    ("dataset", "suffix"), [("cifar10", ""), ("cifar100", "_cifar100"), ("imagenet16-120", "_ImageNet16-120")]
)
def test_counts_are_those_of_the_reference(dataset, suffix):
    space = NASBench201(dataset=dataset)
    names = ("params", "macs") if suffix else ("params", "macs", "convs", "live_macs", "live_convs")
    rows = read_goldens("nasbench201")
    assert len(rows) == 60
    for row in rows:
        counts = statistics(to_graph(space, space.parse(row["genotype"])))
        expected = {name: row[f"{name}{suffix}"] for name in names}
        assert {name: getattr(counts, name) for name in names} == expected, row["genotype"]


@pytest.mark.parametrize("name", GOLDEN_CELLS)
def test_golden_text(name):
    golden = (TEXTS / f"nasbench201_{name}.onnxtxt").read_text()
    assert to_onnx_text(SPACE, SPACE.decode(GOLDEN_CELLS[name])) == golden


@pytest.mark.parametrize("cell", [*SAMPLE[:40], *map(SPACE.decode, DEGENERATE.values())], ids=SPACE.format)
def test_text_is_printed_read_again_and_deterministic(cell):
    text = to_onnx_text(SPACE, cell)
    assert print_model(parse(text)) == text
    assert to_onnx_text(SPACE, SPACE.decode(SPACE.encode(cell))) == text
    assert model_to_onnx_text(to_model(text)) == text


@pytest.mark.parametrize("cell", [*SAMPLE[:10], *map(SPACE.decode, DEGENERATE.values())], ids=SPACE.format)
def test_text_runs(cell):
    logits = run(to_onnx_text(SPACE, cell))
    assert logits.shape == (1, 10)
    assert np.isfinite(logits).all()


@pytest.mark.parametrize(("dataset", "classes"), [("cifar100", 100), ("imagenet16-120", 120)])
def test_other_data_sets_have_their_own_text(dataset, classes):
    space = NASBench201(dataset=dataset)
    text = to_onnx_text(space, SAMPLE[0])
    assert text != to_onnx_text(SPACE, SAMPLE[0])
    assert run(text).shape == (1, classes)


def test_a_network_that_ignores_its_input_is_constant():
    text = to_onnx_text(SPACE, SPACE.decode(DEGENERATE["all_none"]))
    assert "nn.Zeros" in text
    assert "(v0)" not in text.partition("}")[0].partition("{")[2]
    assert measure_latencies([text], repeats=1)[0].median_ms > 0


def test_one_text_per_architecture_key():
    cells = [*SAMPLE, *(twin for cell in SAMPLE[:30] for twin in twins(cell))]
    assert 100 < check_one_text_per_key(cells) < len(cells)


def test_twins_are_twins():
    for cell in SAMPLE[:30]:
        first, second, third, fourth = map(SPACE.architecture_key, twins(cell))
        assert first == second
        assert third == fourth


@pytest.mark.slow
def test_one_text_per_architecture_key_of_the_whole_space():
    assert check_one_text_per_key(list(SPACE.enumerate())) == 5875
