"""Tables are read whole or refused in one line."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from converters.tables.batches import open_table
from nasrlm.examples import Examples
from nasrlm.files import to_json, write_table
from studies.tables.files import label_columns, objective_columns, read_table
from studies.tables.rows import read_rows, require_labels, row_names
from tests.nasrlm.scenes import FRAME

ENDINGS = (".parquet", ".csv", ".jsonl")


@pytest.fixture(params=ENDINGS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"table{request.param}"


def test_a_table_comes_back_as_it_was_written(path: Path) -> None:
    write_table(FRAME, path)
    pd.testing.assert_frame_equal(read_table(path), FRAME, check_dtype=False)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_text_with_any_line_ending_comes_back(path: Path) -> None:
    texts = ["a\rb", "c\nd", "e\r\nf", "g"]
    write_table(pd.DataFrame({"text": texts, "latency_ms@raspi4": [1.5, 2.5, 3.5, 4.5]}), path)
    assert read_table(path)["text"].tolist() == texts


def test_categories_are_words(tmp_path: Path) -> None:
    spaces = pd.Series(["darts", None], dtype="category")
    FRAME.assign(space=spaces).to_parquet(tmp_path / "table.parquet")
    table = read_table(tmp_path / "table.parquet")
    assert Examples.of_table(table, ["a", "b"], []).spaces.tolist() == ["darts", "text"]


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("text,latency_ms@a,latency_ms@a\na,1,2\n")
    with pytest.raises(ValueError, match=r"table\.csv: expected columns with different names, got latency_ms@a twice"):
        read_table(tmp_path / "table.csv")


def test_times_are_no_labels(tmp_path: Path) -> None:
    FRAME.assign(**{"energy_mj@x": pd.Timedelta(seconds=3)}).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="expected numbers in column energy_mj@x, got times, timedelta64"):
        read_table(tmp_path / "table.parquet")


def test_rows_go_by_their_place(tmp_path: Path) -> None:
    """Tables put together by pandas have the same index twice."""
    pd.concat([FRAME, FRAME]).to_parquet(tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("nothing", ["", "NaN"])
def test_words_for_no_number_are_none_beside_numbers_as_words(tmp_path: Path, nothing: str) -> None:
    rows = [{"text": "a", "latency_ms@a": "1.5"}, {"text": "b", "latency_ms@a": nothing}]
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    labels = read_table(tmp_path / "table.jsonl")["latency_ms@a"]
    np.testing.assert_array_equal(labels.to_numpy(dtype=float, na_value=np.nan), [1.5, np.nan])


def test_a_split_is_one_of_three() -> None:
    frame = pd.DataFrame({"split": ["train", None, "validation"], "accuracy@cifar10": [1.0, 2.0, 3.0]})
    with pytest.raises(
        ValueError, match="column split: expected train, valid, test or an empty value, got 'validation' in row 2"
    ):
        Examples.of_table(frame, ["a", "b", "c"], ["accuracy@cifar10"])


def test_a_row_has_text_or_an_architecture(path: Path) -> None:
    write_table(FRAME.assign(text=[None, "a"], architecture=["0123", None]), path)
    frame = read_table(path)
    assert (frame["architecture"][0], frame["text"][1]) == ("0123", "a")


def test_a_space_of_ones_own_is_found_from_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("work", "elsewhere"):
        (tmp_path / folder).mkdir()
    (tmp_path / "work/mine.py").write_text("")
    spaces = ["mine.py:Mine", "nasbench201", "lost.py:Mine", str(tmp_path / "work/mine.py:Mine")]
    pd.DataFrame({"architecture": list("abcd"), "space": spaces}).to_parquet(tmp_path / "work/labels.parquet")
    for folder, table, expected in (("work", "labels.parquet", spaces), ("elsewhere", "../work/labels.parquet", None)):
        monkeypatch.chdir(tmp_path / folder)
        found = read_table(table)["space"].tolist()
        assert found == (expected or ["../work/mine.py:Mine", *spaces[1:]])


def test_labels_are_columns_with_a_context_and_facts(path: Path) -> None:
    write_table(FRAME, path)
    frame = read_table(path, require=["params"])
    assert label_columns(frame) == ("accuracy@cifar10", "latency_ms@raspi4", "params")
    assert objective_columns(frame, path) == ("accuracy@cifar10", "latency_ms@raspi4")


def test_a_label_column_may_be_empty(path: Path) -> None:
    write_table(FRAME.assign(**{"energy_mj@raspi4": None}), path)
    assert read_table(path)["energy_mj@raspi4"].isna().all()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.drop(columns="architecture"), "expected a column architecture or text, got split, accuracy@cifar10"),
        (FRAME.drop(columns="latency_ms@raspi4"), "expected a column latency_ms@raspi4, got labels accuracy@cifar10"),
        (FRAME.assign(architecture=["a", None]), "expected architecture in every row, got none in row 1"),
        (
            FRAME.assign(text=[None, "a"], architecture=[None, None]),
            "expected text or architecture in every row, got none in row 0",
        ),
        (FRAME.drop(columns="architecture").assign(text=["a", ""]), "expected text in every row, got none in row 1"),
        (FRAME.assign(**{"energy_mj@x": ["NaN", "fast"]}), "column energy_mj@x, got 'fast' in row 1"),
        (FRAME.assign(**{"energy_mj@x": ["3", "fast"]}), "expected numbers in column energy_mj@x, got 'fast' in row 1"),
        (
            FRAME.assign(**{"latency_ms@raspi4": [7, -1]}),
            "numbers of 0 or more in column latency_ms@raspi4, got -1 in row 1",
        ),
        (
            FRAME.assign(**{"valid_accuracy@x": [93, 941]}),
            "percent, 0 to 100, in column valid_accuracy@x, got 941 in row 1",
        ),
    ],
)
def test_an_unfit_table_is_refused(path: Path, frame: pd.DataFrame, message: str) -> None:
    write_table(frame, path)
    with pytest.raises(ValueError, match=message) as raised:
        read_table(path, require=["latency_ms@raspi4"])
    assert str(path) in str(raised.value)


def test_accuracies_that_look_like_fractions_are_told(path: Path) -> None:
    write_table(FRAME.assign(**{"accuracy@cifar10": [0.9325, None]}), path)
    with pytest.warns(UserWarning, match=r"percent, 0 to 100, in column accuracy@cifar10, got none above 0\.9325"):
        read_table(path)


def test_other_labels_may_be_negative_and_costs_zero(path: Path) -> None:
    frame = FRAME.assign(**{"latency_ms@raspi4": [0, 8], "gain@x": [-1.5, 3.0]})
    write_table(frame, path)
    pd.testing.assert_frame_equal(read_table(path), frame, check_dtype=False)


def test_a_column_that_is_no_objective_is_refused() -> None:
    expected = r"t\.csv: objective: expected metric_unit@context, got 'a@b@c'.* or name the objectives to learn\."
    with pytest.raises(ValueError, match=expected):
        objective_columns(FRAME.assign(**{"a@b@c": 1.0}), Path("t.csv"))


def test_a_header_that_is_no_objective_is_shown_where_labels_are_missing() -> None:
    frame = pd.DataFrame({"architecture": ["a"], "latency (ms)": ["1 ms"]})
    expected = (
        r"t\.csv: expected a column latency_ms@mine, got no labels, but columns architecture, latency \(ms\)\. "
        r"Rename those of labels to metric_unit@context\."
    )
    with pytest.raises(ValueError, match=expected):
        require_labels([frame], [Path("t.csv")], ["latency_ms@mine"])


def test_a_missing_table_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match=rf"table\{path.suffix}: expected a table, got no such file\."):
        read_table(path)


@pytest.mark.parametrize("name", ["table.xlsx", "table"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    with pytest.raises(
        ValueError, match=r"expected a table ending in \.parquet, \.csv, \.jsonl, got (\.xlsx|no ending)"
    ):
        read_table(tmp_path / name)
    with pytest.raises(ValueError, match=r"expected a table ending in \.parquet, \.csv or \.jsonl, got"):
        write_table(FRAME, tmp_path / name)


def test_words_of_a_csv_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("text,space,split,latency_ms@a\nNA,,test,1\nnull,code,,NA\n")
    frame = read_table(tmp_path / "table.csv")
    assert frame["text"].tolist() == ["NA", "null"]
    assert frame["space"].isna().tolist() == [True, False]
    assert frame["split"].isna().tolist() == [False, True]
    assert frame["latency_ms@a"].isna().tolist() == [False, True]


def test_a_row_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("text,accuracy@here,split\nConv,93.1,train\n\nPool,9")
    with pytest.raises(ValueError, match=r"cut\.csv: .* fewer than the 3 fields of the header in row 1"):
        read_table(path)
    path.write_text(f"text,accuracy@here\n{'Conv ' * 40_000},93.1\n")
    assert len(read_table(path)["text"][0]) == 200_000


@pytest.mark.parametrize(
    ("cells", "numbers"), [((" 1", "2 "), [1, 2]), (("NAN", "-nan"), [None, None]), (("+1", "1e2"), [1, 100])]
)
def test_numbers_of_a_csv_may_be_spelt_in_several_ways(tmp_path: Path, cells: tuple[str, str], numbers: object) -> None:
    rows = "".join(f"x,{cell},{cell}\n" for cell in cells)
    (tmp_path / "t.csv").write_text(f"text,accuracy@here,params\n{rows}")
    frame = read_table(tmp_path / "t.csv").astype(object)
    assert label_columns(read_table(tmp_path / "t.csv")) == ("accuracy@here", "params")
    assert frame["params"].where(frame["params"].notna(), None).tolist() == numbers


@pytest.mark.parametrize("cell", ["0x10", "1_000", "inf", "1e400", "-Infinity", "fast"])
def test_what_spells_no_finite_number_is_refused(tmp_path: Path, cell: str) -> None:
    (tmp_path / "t.csv").write_text(f"text,accuracy@here\nx,1\ny,{cell}\n")
    with pytest.raises(ValueError, match=r"t\.csv: expected .*numbers in column accuracy@here, got .* in row 1\."):
        read_table(tmp_path / "t.csv")


def test_columns_of_several_kinds_are_words(tmp_path: Path) -> None:
    lines = '{"text": "x", "note": 1, "accuracy@here": "1.5"}\n{"text": "x", "note": ["a", 1], "accuracy@here": 2}\n'
    (tmp_path / "t.jsonl").write_text(lines)
    frame = read_table(tmp_path / "t.jsonl")
    assert frame["note"].tolist() == ["1", '["a", 1]']
    assert frame["accuracy@here"].tolist() == [1.5, 2]


@pytest.mark.parametrize("labels", [[True, False], [True, None]])
def test_true_and_false_are_no_labels(tmp_path: Path, labels: list[bool | None]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(to_json({"text": "x", "accuracy@here": label}) + "\n" for label in labels))
    with pytest.raises(ValueError, match=r"expected numbers in column accuracy@here, got true and false\."):
        read_table(path)


def test_integers_beside_floats_are_numbers_however_large(tmp_path: Path) -> None:
    rows = [{"text": "x", "macs": 2**53 + 1}, {"text": "y", "macs": 1.5}, {"text": "z", "macs": None}]
    (tmp_path / "t.jsonl").write_text("".join(to_json(row) + "\n" for row in rows))
    frame = read_table(tmp_path / "t.jsonl")
    assert label_columns(frame) == ("macs",)
    assert frame["macs"].tolist()[:2] == [2.0**53, 1.5]


def test_half_a_character_is_told_by_its_row(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "x"}\n{"text": "\\ud800"}\n')
    with pytest.raises(ValueError, match=r"t\.jsonl: expected .* in column text, got '\\ud800' in row 1 "):
        read_table(tmp_path / "t.jsonl")


def test_an_index_of_pandas_is_a_column(tmp_path: Path) -> None:
    path = tmp_path / "indexed.parquet"
    pd.DataFrame({"architecture": ["a", "b"], "accuracy@here": [1.0, 2.0]}).set_index("architecture").to_parquet(path)
    assert read_table(path)["architecture"].tolist() == ["a", "b"]


def test_a_row_longer_than_the_header_is_refused(tmp_path: Path) -> None:
    for cells in ("hello, world,90.0", "hello,90.0,"):
        (tmp_path / "table.csv").write_text(f"text,accuracy@cifar10\n{cells}\n{cells}\n")
        with pytest.raises(ValueError, match=r"table\.csv: .* more than the 2 fields of the header in row 0"):
            read_table(tmp_path / "table.csv")


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_byte_order_mark_is_no_part_of_a_table(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table{ending}"
    write_table(FRAME, path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_table(path).columns.tolist() == FRAME.columns.tolist()
    assert open_table(path).schema.names == FRAME.columns.tolist()


def test_words_may_be_bytes_and_notations_lists(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pd.DataFrame({"text": [b"Conv", None], "architecture": [None, [1, 2]]}).to_parquet(path)
    frame = read_table(path)
    assert (frame["text"][0], frame["architecture"][1]) == ("Conv", "[1, 2]")
    assert row_names(frame) == ["Conv", "[1, 2]"]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
@pytest.mark.parametrize("cell", [[1, 2], 3, 0.5, True])
def test_a_text_that_is_none_is_refused_by_both_readers(tmp_path: Path, ending: str, cell: object) -> None:
    path = tmp_path / f"table{ending}"
    mixed = ["Conv", *[None] * 5, cell] if ending == ".jsonl" else [None] * 6 + [cell]  # a column has one type there
    rows = pd.DataFrame({"text": mixed, "architecture": "a", "space": "darts"})
    rows.to_parquet(path) if ending == ".parquet" else rows.to_json(path, orient="records", lines=True)
    message = rf"table\{ending}: expected a string in column text, got {re.escape(str(cell))}(\.0)? in row 6\."
    for read in (read_table, lambda path: list(open_table(path).batches(4))):
        with pytest.raises(ValueError, match=message):
            read(path)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_no_digit_is_lost(tmp_path: Path, ending: str) -> None:
    labels = [1.23456789e-9, 93.123456789012345]
    write_table(FRAME.assign(**{"latency_ms@raspi4": labels}), tmp_path / f"table{ending}")
    assert read_table(tmp_path / f"table{ending}")["latency_ms@raspi4"].tolist() == labels


@pytest.mark.parametrize("ending", [".parquet", ".jsonl"])
@pytest.mark.parametrize("keep", [0, 30])
def test_a_truncated_table_is_refused(tmp_path: Path, ending: str, keep: int) -> None:
    path = tmp_path / f"table{ending}"
    write_table(FRAME, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=rf"table\{ending}: expected ") as raised:
        read_table(path)
    assert "\n" not in str(raised.value)


def test_another_separator_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("architecture;accuracy@cifar10\na;90\n")
    with pytest.raises(ValueError, match=r"got architecture;accuracy@cifar10\. Separate them by commas\.$"):
        read_table(path)


def test_rows_of_a_users_space_are_found_by_any_path_to_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spaces = [f"{tmp_path}/own.py:Own", "own.py:Own", "own.py:Other", None]
    pd.DataFrame({"space": spaces, "architecture": list("abcd")}).to_csv("t.csv", index=False)
    rows = read_rows(Path("t.csv"), "./own.py:Own")
    assert rows.index.tolist() == [0, 1]
    assert set(rows["space"]) == {"./own.py:Own"}
    pd.DataFrame(columns=["space", "architecture"]).to_csv("empty.csv", index=False)
    with pytest.raises(ValueError, match=r"^empty\.csv: expected rows of space own\.py:Own, got none\.$"):
        read_rows(Path("empty.csv"), "own.py:Own")


def test_blanks_around_names_of_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("architecture, latency_ms@mine\na,1\n")
    with pytest.raises(ValueError, match=r"table\.csv: expected column names without surrounding spaces, got ' laten"):
        read_table(tmp_path / "table.csv")


def test_columns_named_like_objectives_are_labels() -> None:
    frame = pd.DataFrame({"architecture": ["a"], "top1": [70.0], "other": [1.0]})
    assert label_columns(frame, ["top1", "absent"]) == ("top1",)
    assert label_columns(frame) == ()
