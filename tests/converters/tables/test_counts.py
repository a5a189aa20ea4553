"""Labels that cost nothing are those of each network, whoever counts them."""

import pickle
from dataclasses import asdict, astuple
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from converters import statistics, to_graph, to_measured_text, to_onnx_text
from converters.tables.counts import COUNTS, LATENCY, derive_counts, named_counts
from converters.tables.stream import StreamConfig, convert_table
from spaces import get_space
from spaces.drawing import draw


def write(path: Path, names: tuple[str, ...], count: int) -> pd.DataFrame:
    rows = [{"space": name, **drawn._asdict()} for name in names for drawn in draw(get_space(name), count, 0)]
    frame = pd.DataFrame(rows)
    frame.to_parquet(path)
    return frame


def test_every_row_has_the_counts_of_its_network(tmp_path: Path) -> None:
    frame = write(tmp_path / "drawn.parquet", ("nasbench201", "nasbench_macro"), 6)
    convert_table(StreamConfig(tmp_path / "drawn.parquet", tmp_path / "out.parquet", derivation=derive_counts()))
    counted = pd.read_parquet(tmp_path / "out.parquet")
    assert counted.columns.tolist() == ["space", "architecture", "split", *COUNTS]
    for row, (_, drawn) in zip(counted[[*COUNTS]].to_numpy(), frame.iterrows(), strict=True):
        space = get_space(drawn["space"])
        assert tuple(row) == astuple(statistics(to_graph(space, space.parse(drawn["architecture"]))))


def test_texts_stand_beside_them() -> None:
    space = get_space("nasbench201")
    lost = space.decode((1, 3, 0, 0, 0, 0))  # its convolution reaches no output
    derived = derive_counts(texts=True)
    *counts, text = derived.compute(space, lost)
    assert list(derived.columns) == [*COUNTS, "text"]
    assert tuple(counts) == astuple(statistics(to_graph(space, lost)))
    assert text == to_measured_text(space, lost) != to_onnx_text(space, lost)


@pytest.mark.parametrize("names", [("macs", "params"), ("live_macs", "macs"), ("depth",), ("convs", "live_convs")])
def test_some_counts_are_those_of_all(names: tuple[str, ...]) -> None:
    space = get_space("nasbench201")
    lost = space.decode((1, 3, 0, 0, 0, 0))
    counts = asdict(statistics(to_graph(space, lost)))
    found = named_counts(space, [lost], [f"{name}@onnx" for name in names])
    assert found.tolist() == [[counts[name] for name in names]]
    assert counts["convs"] != counts["live_convs"]


def test_workers_know_it_again() -> None:
    """What they have counted they remember by it, and every chunk of rows brings a copy."""
    compute = derive_counts(texts=True).compute
    assert {pickle.loads(pickle.dumps(compute)): "counted"}[compute]


def test_latency_is_measured_beside_them(tmp_path: Path) -> None:
    write(tmp_path / "drawn.parquet", ("nasbench_macro",), 2)
    config = StreamConfig(tmp_path / "drawn.parquet", tmp_path / "out.parquet", derivation=derive_counts(repeats=1))
    convert_table(config)
    counted = pd.read_parquet(config.out)
    assert counted.columns.tolist()[-2:] == [COUNTS[-1], LATENCY]
    assert (counted[LATENCY] > 0).all()


def test_isomorphic_architectures_share_a_split() -> None:
    space = get_space("nasbench201")
    rows = [drawn for seed in (0, 1) for drawn in draw(space, 400, seed)]
    splits = pd.DataFrame(
        {
            "key": [space.architecture_key(space.parse(row.architecture)) for row in rows],
            "split": [r.split for r in rows],
        }
    )
    assert (splits.groupby("key")["split"].nunique() == 1).all()
    assert set(splits["split"]) == {"train", "valid", "test"}
    assert np.mean(splits["split"] == "train") > 0.8


def test_draws_are_different_and_by_seed() -> None:
    space = get_space("nasbench201")
    first = list(draw(space, 1000, 0))
    assert len({row.architecture for row in first}) == len(first) < 1000
    assert list(draw(space, 1000, 0)) == first != list(draw(space, 1000, 1))
