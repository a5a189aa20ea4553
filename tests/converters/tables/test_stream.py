"""Whole tables: nothing lost, failures told, killed runs that go on to the same file."""

import errno
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from converters import to_onnx_text
from converters.tables import stream
from converters.tables.counts import derive_counts
from converters.tables.stream import StreamConfig, convert_table
from spaces import get_space
from spaces.nasbench101 import Module

ROWS = 50
SPACE = get_space("nasbench201")
ARCHITECTURES = [SPACE.sample(np.random.default_rng(seed)) for seed in range(ROWS)]
NOTATIONS = [SPACE.format(architecture) for architecture in ARCHITECTURES]
CONV1, CONV3 = "conv1x1-bn-relu", "conv3x3-bn-relu"
BUSY = r"texts\.parquet: expected a file that no other run writes, got .* Wait for it, or choose another file\.$"
ROOT = Path(__file__).parents[3]


def _write(path: Path, frame: pd.DataFrame) -> Path:
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=7)
    return path


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"space": "nasbench201", "architecture": NOTATIONS, "accuracy@here": np.arange(ROWS) / 7})


@pytest.fixture
def config(tmp_path: Path, frame: pd.DataFrame) -> StreamConfig:
    """Seven parts of eight rows, the last of two."""
    table = _write(tmp_path / "table.parquet", frame)
    return StreamConfig(table, tmp_path / "texts.parquet", workers=1, chunk_rows=4, part_chunks=2)


def _left(config: StreamConfig) -> set[str]:
    return {path.name for path in config.out.parent.iterdir()} - {config.table.name}


def _stop_after(rows: int):
    """A progress report that fails there, as if the run had been interrupted."""

    def report(done: int, total: int) -> None:
        if done >= rows:
            raise KeyboardInterrupt

    return report


@pytest.mark.parametrize("workers", [1, 2])
def test_a_text_is_added_to_every_row(config, frame, workers):
    reports = []
    result = convert_table(replace(config, workers=workers), on_progress=lambda *counts: reports.append(counts))
    expected = frame.assign(text=[to_onnx_text(SPACE, architecture) for architecture in ARCHITECTURES])
    pd.testing.assert_frame_equal(pd.read_parquet(config.out), expected, check_dtype=False)
    assert (result.rows, result.failed, result.left_out) == (ROWS, 0, 0)
    assert (reports[0], reports[-1]) == ((0, ROWS), (ROWS, ROWS))
    assert _left(config) == {"texts.parquet"}


def test_every_row_gets_its_own_text_whatever_stands_before_it(config, tmp_path):
    """Of isomorphic modules of NAS-Bench-101, which share a key, the first vertices have more channels."""
    space = get_space("nasbench101")
    edges = ((0, 1, 1, 1, 0), *[(0, 0, 0, 0, 1)] * 3, (0,) * 5)
    twins = [Module(edges, labels) for labels in ((CONV3, CONV1, CONV1), (CONV1, CONV1, CONV3))]
    assert len({space.architecture_key(twin) for twin in twins}) == 1
    frame = pd.DataFrame({"space": space.name, "architecture": [space.format(twin) for twin in twins]})
    convert_table(replace(config, table=_write(tmp_path / "twins.parquet", frame)))
    texts = pd.read_parquet(config.out)["text"].tolist()
    assert texts == [to_onnx_text(space, twin) for twin in twins]
    assert len(set(texts)) == 2


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_other_formats_give_the_same(config, frame, suffix, tmp_path):
    convert_table(config)
    table = tmp_path / f"table{suffix}"
    frame.to_csv(table, index=False) if suffix == ".csv" else frame.to_json(table, orient="records", lines=True)
    convert_table(replace(config, table=table, out=tmp_path / "other.parquet"))
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "other.parquet"), pd.read_parquet(config.out), check_dtype=False
    )


def test_rows_that_fail_are_told_and_the_others_kept(config, frame, tmp_path):
    frame.loc[3, "architecture"] = "nonsense"
    frame.loc[9, "space"] = "nowhere"
    frame.loc[49, "architecture"] = None
    result = convert_table(replace(config, table=_write(tmp_path / "wrong.parquet", frame)))
    assert (result.rows, result.failed) == (ROWS - 3, 3)
    assert pd.read_parquet(config.out)["architecture"].tolist() == frame["architecture"].drop([3, 9, 49]).tolist()
    errors = [json.loads(line) for line in result.errors.read_text().splitlines()]
    assert [(e["row"], e["architecture"]) for e in errors] == [(3, "nonsense"), (9, NOTATIONS[9]), (49, None)]
    reasons = ("nasbench201 notation: expected 3 nodes", "space: expected one of", "row: expected a space and")
    assert all(e["reason"].startswith(reason) for e, reason in zip(errors, reasons, strict=True))


def test_rows_of_other_spaces_are_counted(config, frame, tmp_path):
    frame.loc[10:, "space"] = "fbnet"
    frame.loc[3, "architecture"] = "nonsense"
    table = _write(tmp_path / "two.parquet", frame)
    result = convert_table(replace(config, table=table, space="nasbench201"))
    assert (result.rows, result.failed, result.left_out) == (9, 1, 40)
    with pytest.raises(ValueError, match=r"got 50 of spaces other than hiaml\.$"):
        convert_table(replace(config, table=table, space="hiaml", out=tmp_path / "none.parquet"))
    assert not (tmp_path / "none.parquet").exists()


def test_when_all_rows_fail_there_is_no_output(config, frame, tmp_path):
    table = _write(tmp_path / "wrong.parquet", frame.assign(architecture="nonsense"))
    with pytest.raises(
        ValueError, match=r"expected rows that can be converted, got 50 that fail \(see .*errors\.jsonl\)\.$"
    ):
        convert_table(replace(config, table=table))
    assert _left(config) == {"wrong.parquet", "texts.parquet.errors.jsonl"}
    convert_table(config)  # what failed is no obstacle
    assert _left(config) == {"wrong.parquet", "texts.parquet"}


def test_an_empty_table_gives_an_empty_table(config, frame, tmp_path):
    result = convert_table(replace(config, table=_write(tmp_path / "empty.parquet", frame[:0])))
    assert (result.rows, pd.read_parquet(config.out).columns.tolist()[-1]) == (0, "text")


@pytest.mark.parametrize("rows", [1, 8, 9, 33, ROWS])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_goes_on_to_the_same_file(config, frame, tmp_path, rows, workers):
    frame.loc[[3, 12, 40], "architecture"] = "nonsense"
    config = replace(config, table=_write(tmp_path / "table.parquet", frame), workers=workers)
    whole = replace(config, out=tmp_path / "whole" / "texts.parquet")
    convert_table(whole)

    with pytest.raises(KeyboardInterrupt):
        convert_table(config, on_progress=_stop_after(rows))
    assert not config.out.exists()
    with pytest.raises(ValueError, match=r"texts\.parquet\.parts: .* unfinished run\. Continue with --resume, or"):
        convert_table(config)
    reports = []
    result = convert_table(replace(config, resume=True), on_progress=lambda done, total: reports.append(done))

    assert reports[0] == (rows - 1) // 4 * 4 // 8 * 8  # whole parts
    assert (result.rows, result.failed) == (ROWS - 3, 3)
    assert config.out.read_bytes() == whole.out.read_bytes()
    assert result.errors.read_text() == whole.out.with_name("texts.parquet.errors.jsonl").read_text()


def test_a_finished_run_is_not_repeated(config, monkeypatch):
    first = convert_table(config)
    with pytest.raises(ValueError, match=r"texts\.parquet: expected no such file, got one"):
        convert_table(config)
    monkeypatch.setattr(stream, "with_answers", None)
    again = convert_table(replace(config, resume=True))
    assert (again.rows, again.failed) == (first.rows, first.failed)


@pytest.mark.parametrize("resume", [False, True])
def test_two_runs_do_not_write_one_file(config, resume):
    def begin_another(done: int, total: int) -> None:
        with pytest.raises(ValueError, match=BUSY):
            convert_table(replace(config, resume=resume))

    assert convert_table(config, on_progress=begin_another).rows == ROWS
    assert _left(config) == {"texts.parquet"}


def test_a_full_disk_is_told_by_the_output_and_nothing_stands_in_the_way_of_the_next_run(config, monkeypatch):
    def fail(path: Path, text: str, **options: object) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    message = r"texts\.parquet: expected to write this file and its parts, got No space left .* Free some space"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match=message):
            convert_table(config)
    assert _left(config) == set()
    config.out.with_name(".texts.parquet.parts").mkdir()  # killed before it wrote anything
    assert convert_table(config).rows == ROWS
    assert _left(config) == {"texts.parquet"}


def test_an_output_that_cannot_be_written_is_told(config):
    with pytest.raises(OSError, match=r"x\.parquet: expected to write .*, got File exists\. Choose a file that you"):
        convert_table(replace(config, out=config.table / "x.parquet"))


def test_parts_that_a_finished_run_left_are_not_taken_over(config, tmp_path):
    """Killed once its output was there, and then the output was deleted."""
    with pytest.raises(KeyboardInterrupt):
        convert_table(config, on_progress=_stop_after(20))
    (config.out.with_name(".texts.parquet.parts") / "run.json").unlink()
    other = replace(config, part_chunks=3, resume=True)
    convert_table(other)
    anew = replace(other, out=tmp_path / "anew" / "texts.parquet")
    convert_table(anew)
    assert config.out.read_bytes() == anew.out.read_bytes()


def test_parts_of_another_run_are_refused(config, frame, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        convert_table(config, on_progress=_stop_after(20))
    for other in (
        replace(config, table=_write(tmp_path / "other.parquet", frame[::-1])),
        replace(config, space="nasbench201"),
        replace(config, part_chunks=3),
    ):
        with pytest.raises(ValueError, match=r"expected parts made with .*, got .*\. Delete it to start again"):
            convert_table(replace(other, resume=True))


def test_a_run_goes_on_with_a_copy_of_its_table_and_space(config, frame, tmp_path, monkeypatch):
    """As where a job copies what it reads to a folder of its own."""
    for folder, table in (("first", "table.parquet"), ("then", "copy.parquet")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text("from spaces.nasbench201 import NASBench201 as Own\n")
        _write(tmp_path / folder / table, frame.assign(space="own.py:Own"))
    monkeypatch.chdir(tmp_path / "first")
    with pytest.raises(KeyboardInterrupt):
        convert_table(replace(config, table=Path("table.parquet")), on_progress=_stop_after(20))
    monkeypatch.chdir(tmp_path / "then")
    os.utime("copy.parquet", (1, 1))
    moved = replace(config, table=Path("copy.parquet"), resume=True)
    reports = []
    assert convert_table(moved, on_progress=lambda done, total: reports.append(done)).rows == ROWS
    assert reports[0] == 16
    assert convert_table(moved).rows == ROWS


@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        ({"out": Path("texts.csv")}, {}, r"texts\.csv: expected a file ending in \.parquet"),
        ({}, {"architecture": "name"}, "expected a column architecture, got space, name"),
        ({}, {"accuracy@here": "text"}, "expected no column text yet"),
        ({}, {"space": "place"}, "expected a column space, got none. Name it with --space"),
        ({"space": "nowhere"}, {}, "space: expected one of"),
        ({"engine": "dask"}, {}, "engine: expected one of process, ray"),
        ({"workers": 0}, {}, "workers: expected 1 or more, got 0"),
    ],
)
def test_bad_input_leaves_nothing_behind(config, frame, tmp_path, changes, columns, message):
    table = _write(tmp_path / "table.parquet", frame.rename(columns=columns))
    with pytest.raises(ValueError, match=message):
        convert_table(replace(config, table=table, **changes))
    assert _left(config) == set()


def test_a_column_that_parquet_cannot_hold_is_named(config, frame, tmp_path):
    table = tmp_path / "table.jsonl"
    frame.assign(note=[{}] * len(frame)).to_json(table, orient="records", lines=True)
    with pytest.raises(
        ValueError, match=r"table\.jsonl: expected values that Parquet can store in column note, got Cannot"
    ):
        convert_table(replace(config, table=table))
    assert _left(config) == {table.name}


def test_another_separator_is_told(config, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("architecture;accuracy@here\n0;3\n")
    with pytest.raises(ValueError, match=r"got architecture;accuracy@here\. Separate them by commas\.$"):
        convert_table(replace(config, table=table))


def test_a_killed_run_leaves_no_worker_and_goes_on(config, tmp_path):
    """SIGKILL in earnest, with three parts finished and both workers busy: they never end with the rows after."""
    script = f"""
import time
from pathlib import Path
from converters.tables import stream
def stuck(space, architecture, convert=stream.to_onnx_text):
    if space.format(architecture) in {NOTATIONS[24:]}:
        time.sleep(600)
    return convert(space, architecture)
stream.to_onnx_text = stuck
paths = {str(config.table)!r}, {str(config.out)!r}
stream.convert_table(stream.StreamConfig(*map(Path, paths), workers=2, chunk_rows=4, part_chunks=2))
"""
    run = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, start_new_session=True)
    third_part = tmp_path / ".texts.parquet.parts" / "part-000002.parquet"
    _wait_until(third_part.exists)
    with pytest.raises(ValueError, match=BUSY):
        convert_table(config)
    run.kill()
    run.wait()
    _wait_until(lambda: not _group_lives(run.pid))
    assert not config.out.exists()
    result = convert_table(replace(config, resume=True))
    assert result.rows == ROWS
    assert _left(config) == {"texts.parquet"}
    convert_table(replace(config, out=tmp_path / "whole.parquet"))
    assert config.out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def _group_lives(group: int) -> bool:  # zombies, for whom nobody waits in some containers, do not
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                return True
    return False


def _wait_until(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "expected it within a minute"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_ray_cluster_of_two_workers_gives_the_same(config, tmp_path):
    ray = pytest.importorskip("ray", reason="needs the extra `ray`")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    convert_table(config)
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        result = convert_table(replace(config, out=tmp_path / "ray.parquet", engine="ray", workers=2))
    finally:
        ray.shutdown()
        cluster.shutdown()
    assert result.rows == ROWS
    assert (tmp_path / "ray.parquet").read_bytes() == config.out.read_bytes()


def test_a_finished_output_of_another_table_is_not_taken_for_it(config: StreamConfig, frame: pd.DataFrame) -> None:
    convert_table(config)
    _write(config.table, pd.concat([frame, frame], ignore_index=True))
    with pytest.raises(ValueError, match=r"expected an output made with table .* Delete it, or choose another"):
        convert_table(replace(config, resume=True))


def test_a_table_that_was_edited_is_told_by_its_name(config, frame, tmp_path):
    table = tmp_path / "table.csv"
    frame.to_csv(table, index=False)
    config, stat = replace(config, table=table), table.stat()
    with pytest.raises(KeyboardInterrupt):
        convert_table(config, on_progress=_stop_after(20))
    table.write_text(table.read_text().replace("0.0\n", "0.1\n"))
    os.utime(table, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    message = (
        r"expected parts made with table .*/table\.csv in its current state, \d+ bytes with digest [0-9a-f]{16}, "
        r"got another table, or table\.csv in an earlier state, \d+ bytes with digest [0-9a-f]{16}\. Delete it to start"
    )
    with pytest.raises(ValueError, match=message):
        convert_table(replace(config, resume=True))
    assert table.stat().st_size == stat.st_size


def test_a_finished_output_of_an_edited_space_is_not_taken_for_its_own(config, frame, tmp_path):
    own = tmp_path / "own.py"
    own.write_text("from spaces.nasbench201 import NASBench201 as Own\n")
    frame["space"] = f"{own}:Own"
    frame.loc[:5, "space"] = [f"{tmp_path}/nowhere.py:Own", "nasbench201", "nowhere", "", None, f"{own}:Other"]
    config = replace(config, table=_write(tmp_path / "mixed.parquet", frame))
    assert convert_table(config).rows == convert_table(replace(config, resume=True)).rows == ROWS - 5
    own.write_text(own.read_text() + "# edited\n")
    with pytest.raises(ValueError, match=r"expected an output made with the space's file .*own\.py, \d+ bytes"):
        convert_table(replace(config, resume=True))


def test_an_edited_module_beside_a_space_is_noticed(config, tmp_path):
    beside = tmp_path / "beside_own.py"
    beside.touch()
    (tmp_path / "own.py").write_text("import beside_own\nfrom spaces.nasbench201 import NASBench201 as Own\n")
    config = replace(config, table=_write(tmp_path / "of_own.parquet", pd.DataFrame({"architecture": NOTATIONS})))
    config = replace(config, space=f"{tmp_path}/own.py:Own")
    assert convert_table(config).rows == convert_table(replace(config, resume=True)).rows == ROWS
    beside.write_text("# edited\n")
    with pytest.raises(ValueError, match=r"made with the space's file .*beside_own\.py beside .*, 9 bytes"):
        convert_table(replace(config, resume=True))


def test_counts_beside_texts_are_told_to_be_of_architectures(config, frame):
    _write(config.table, frame.assign(text="a\nb"))
    with pytest.warns(
        UserWarning, match=r"table\.parquet: results are computed from the column architecture; the column text"
    ):
        convert_table(replace(config, derivation=derive_counts()))
    written = pd.read_parquet(config.out)
    assert (written["text"] == "a\nb").all()
    assert written["params@onnx"].nunique() > 1
