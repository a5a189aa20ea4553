"""Reading tables in batches: the same columns and rows in all three formats, whatever the size of a batch."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from converters import to_onnx_text
from converters.tables import csv_table, jsonl_table
from converters.tables.batches import open_table
from spaces import get_space

FRAME = pd.DataFrame(
    {
        "architecture": [f"0{row}" for row in range(10)],
        "note": ["two\nlines", 'a "quote"', *"cdefghij"],
        "count": range(10),
        "late_float": [1.0] * 9 + [0.5],
        "gap": [None, *range(9)],
        "nothing": [None] * 10,
    }
)
SUFFIXES = (".parquet", ".csv", ".jsonl")


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"table{request.param}"
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(FRAME), path, row_group_size=4)
    elif path.suffix == ".csv":
        FRAME.to_csv(path, index=False)
    else:
        rows = [{k: v for k, v in row.items() if v == v and v is not None} for row in FRAME.to_dict("records")]
        path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("size", [1, 3, 4, 10, 99])
@pytest.mark.parametrize("start", [0, 5, 9, 10])
def test_every_row_once_in_order(path, size, start, monkeypatch):
    monkeypatch.setattr(jsonl_table, "JSON_ROWS", 4)
    monkeypatch.setattr(csv_table, "CSV_BLOCK", 64)
    table = open_table(path)
    found = list(table.batches(size, start=start))
    assert table.num_rows == 10
    assert [batch.num_rows for batch in found] == [min(size, 10 - row) for row in range(start, 10, size)]
    assert all(batch.schema == table.schema for batch in found)
    if found:
        frame = pa.concat_tables(found).to_pandas()
        for name in ("architecture", "note", "count", "late_float"):
            assert frame[name].tolist() == FRAME[name].tolist()[start:]
        assert frame["gap"].isna().tolist() == FRAME["gap"].isna().tolist()[start:]


def test_a_large_csv_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    path, rows = tmp_path / "large.csv", 4_000
    path.write_text("text,count\n" + f"{'x' * 100_000},1\n" * rows)
    default = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(default)
    pa.set_memory_pool(counted)
    try:
        table = open_table(path)
        assert sum(batch.num_rows for batch in table.batches(100)) == rows
    finally:
        pa.set_memory_pool(default)
    assert counted.max_memory() < path.stat().st_size


def test_a_row_that_is_too_long_for_a_csv_is_told(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"text,count\na,1\n{'x' * (3 * csv_table.CSV_BLOCK)},2\n")
    with pytest.raises(ValueError, match="got a row of more than 4,194,304 bytes, or an unclosed quote"):
        open_table(path)


def test_types_hold_for_the_whole_table(path):
    kinds = dict(zip(open_table(path).schema.names, map(str, open_table(path).schema.types), strict=True))
    assert kinds["architecture"] in ("string", "large_string")
    assert (kinds["count"], kinds["late_float"]) == ("int64", "double")


def test_numbers_and_words_in_one_column_are_words_in_csv(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("architecture,a,b\n1,1,0.5\n2,x,y\n3,3,\n")
    assert next(open_table(path).batches(9)).to_pylist()[2] == {"architecture": "3", "a": "3", "b": None}


def test_a_notation_that_is_json_may_stand_in_a_line_as_such(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"architecture": [1, "relu"]}\n\n{"architecture": 12, "late": 1}\n')
    rows = next(open_table(path).batches(9)).to_pylist()
    assert rows == [{"architecture": '[1, "relu"]', "late": None}, {"architecture": "12", "late": 1}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"a", None], pa.binary()),
        pa.array(["a", None], pa.string_view()),
        pa.array(["a", None]).dictionary_encode(),
        pa.array(["a", None], pa.large_string()).dictionary_encode(),
    ],
)
def test_words_are_strings_whatever_spells_them(tmp_path, column):
    pq.write_table(pa.table({"text": column, "space": column, "a": [1, 2]}), tmp_path / "t.parquet")
    (batch,) = open_table(tmp_path / "t.parquet").batches(9)
    assert batch["text"].to_pylist() == batch["space"].to_pylist() == ["a", None]


def test_a_notation_may_be_a_list_and_no_row_have_a_text(tmp_path):
    column, nothing = pa.array([["a"], None]), pa.nulls(2)
    pq.write_table(pa.table({"architecture": column, "text": nothing}), tmp_path / "t.parquet")
    (batch,) = open_table(tmp_path / "t.parquet").batches(9)
    assert batch.to_pydict() == {"architecture": ['["a"]', None], "text": [None, None]}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_onnx_text_that_breaks_off_is_told(tmp_path, suffix):
    space = get_space("nasbench201")
    text = to_onnx_text(space, space.decode([3, 0, 1, 2, 3, 4]))
    frame = pd.DataFrame({"text": ["def f(): return 1", text, f"{text}\n", text[:300]]})
    path = tmp_path / f"texts{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    elif suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    for size, start in ((1, 0), (2, 0), (9, 0), (2, 3)):
        with pytest.raises(
            ValueError, match=rf"texts\{suffix}: expected complete ONNX text in row 3, got one that ends in"
        ):
            list(open_table(path).batches(size, start=start))


def test_a_notation_that_json_cannot_spell_is_told(tmp_path):
    pq.write_table(pa.table({"architecture": [None, [b"a"]]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet: expected a string or JSON in .*, got \[b'a'\] in row 1"):
        list(open_table(tmp_path / "t.parquet").batches(9))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"a": 1}, {"a": None}, {"a": "x"}], "column a, got 'x' in row 2 "),
        ([{"a": "x"}, {"a": "y"}, {"b": 1, "a": [3]}], r"column a, got \[3\] in row 2 "),
        ([{"a": True}, {"a": False}, {"a": 1}], "column a, got 1 in row 2 "),
        ([{"a": 1}, {"a": 2}, {"a": 2**70}], f"column a, got {2**70} in row 2 "),
        ([{"a": 1}, {"a": 2**60 + 1}, {"a": 0.5}], "column a, got .* in row [12] "),
    ],
)
@pytest.mark.parametrize("together", [1, 2, 9])
def test_values_of_two_kinds_in_a_column_are_told_by_their_row(tmp_path, monkeypatch, rows, message, together):
    monkeypatch.setattr(jsonl_table, "JSON_ROWS", together)
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"architecture": "x", **row}) + "\n" for row in rows))
    with pytest.raises(ValueError, match=rf"^.*t\.jsonl: expected values of one kind in {message}") as raised:
        list(open_table(path).batches(9))
    assert "truncated" not in str(raised.value)
    assert next(open_table(path, ("architecture",)).batches(9)).to_pydict() == {"architecture": ["x"] * 3}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_some_columns_of_a_table_are_read_alone(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"
    FRAME.to_parquet(path) if suffix == ".parquet" else None
    FRAME.to_csv(path, index=False) if suffix == ".csv" else None
    FRAME.to_json(path, orient="records", lines=True) if suffix == ".jsonl" else None
    table = open_table(path, ("count", "architecture", "none"))
    assert table.names == tuple(FRAME.columns)
    assert table.schema.names == ["architecture", "count"]
    read = pa.concat_tables(table.batches(4)).to_pydict()
    assert read == {"architecture": FRAME["architecture"].tolist(), "count": list(range(10))}


def test_words_of_a_csv_are_read_as_they_are(tmp_path):
    (tmp_path / "t.csv").write_text("text,a,b,c\nnull,1,x,None\nNA,NA,null,nan\n,2,,\n")
    (batch,) = open_table(tmp_path / "t.csv").batches(9)
    words = {"text": ["null", "NA", None], "b": ["x", "null", None]}
    assert batch.to_pydict() == words | {"a": [1, None, 2], "c": [None, None, None]}


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("t.txt", "", "expected a table ending in .parquet, .csv, .jsonl, got .txt"),
        ("t.parquet", "PAR1", "expected a readable parquet table, got .* Is it truncated"),
        ("t.csv", "", "expected a readable csv table, got Empty CSV file"),
        ("t.csv", "a,b\n1\n", r"expected a readable csv table, got fewer than the 2 .* in row 0\. Is it truncated\?$"),
        ("t.csv", "a,a\n1,2\n", "expected columns with different names, got a twice. Rename one.$"),
        ("t.jsonl", '{"a": 1}\n{"a', "expected a readable jsonl table, got .* in line 2"),
        ("t.jsonl", "[1]", r"expected an object in every line, got \[1\] in line 1.$"),
    ],
)
def test_damage_is_told(tmp_path, name, contents, message):
    (tmp_path / name).write_text(contents)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        open_table(tmp_path / name)


@pytest.mark.parametrize(("name", "contents"), [("t.csv", "text,a\ncafé,1\n"), ("t.jsonl", '{"text": "café"}\n')])
def test_another_encoding_is_told(tmp_path, name, contents):
    (tmp_path / name).write_bytes(contents.encode("latin-1"))
    with pytest.raises(
        ValueError, match=rf"{name}: expected a readable .* table, got .* Is it complete, and in UTF-8\?$"
    ):
        list(open_table(tmp_path / name).batches(9))


def test_a_folder_is_told(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv: expected a table, got a folder\.$"):
        open_table(tmp_path / "folder.csv")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ValueError, match=r"none\.csv: expected a table, got no such file"):
        open_table(tmp_path / "none.csv")


@pytest.mark.parametrize(("suffix", "contents"), [(".csv", "architecture,a\n"), (".jsonl", "")])
def test_a_table_may_be_empty(tmp_path, suffix, contents):
    (tmp_path / f"t{suffix}").write_text(contents)
    table = open_table(tmp_path / f"t{suffix}")
    assert (table.num_rows, list(table.batches(4))) == (0, [])


def test_rows_of_a_users_space_are_found_by_any_path_to_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spaces = [f"{tmp_path}/own.py:Own", "own.py:Own", "own.py:Other", None]
    pd.DataFrame({"space": spaces, "architecture": list("abcd")}).to_csv("t.csv", index=False)
    for name in ("own.py:Own", "./own.py:Own", f"{tmp_path}/own.py:Own"):
        (batch,) = open_table(Path("t.csv")).batches_of_space(name, 9)
        assert list(batch.numbers) == [0, 1]


def test_fields_that_are_not_separated_by_commas_are_told(tmp_path):
    (tmp_path / "t.csv").write_text("architecture;latency_ms@here\n[1, 2];3\n")
    expected = r"t\.csv: expected columns separated by commas, got a header without a comma, but commas in row 0\.$"
    with pytest.raises(ValueError, match=expected):
        list(open_table(tmp_path / "t.csv").batches(4))


@pytest.mark.parametrize("cell", ['[16, 1, "relu"]', "'[16, 1, \"relu\"]'", '"[16, 1, ""relu""]",'])
@pytest.mark.parametrize("label", ["", ",83"])
def test_commas_in_a_field_are_told_to_be_quoted(tmp_path, cell, label):
    header = f"architecture{',accuracy@here' if label else ''}"
    (tmp_path / "t.csv").write_text(f"{header}\n{cell}{label}\n")
    advice = r"Put a field that contains commas in double quotes, and double the quotes inside it\.$"
    with pytest.raises(ValueError, match=rf"t\.csv: expected .*, got more than the [12] fields .* in row 0\. {advice}"):
        open_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(f'{header}\n"[16, 1, ""relu""]"{label}\n')
    assert next(open_table(tmp_path / "t.csv").batches(4))["architecture"].to_pylist() == ['[16, 1, "relu"]']


def test_no_function_of_python_is_left_to_threads_that_read_csv(path, monkeypatch):
    """Arrow would drop it when the process ends, and abort the process."""
    handlers = []
    opened = csv_table.pyarrow.csv.open_csv

    def open_csv(*arguments, parse_options, **options):
        handlers.append(parse_options.invalid_row_handler)
        return opened(*arguments, parse_options=parse_options, **options)

    monkeypatch.setattr(csv_table.pyarrow.csv, "open_csv", open_csv)
    open_table(path).whole()
    assert not any(handlers)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_wide_characters_are_told(tmp_path, name):
    (tmp_path / name).write_text("architecture,latency_ms@here\n0,3\n", encoding="utf-16")
    with pytest.raises(ValueError, match=rf"{name}: expected UTF-8, got UTF-16\. Save it again"):
        open_table(tmp_path / name)


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_names_of_spaces_are_those_of_rows(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    pd.DataFrame({"space": ["darts", None, "fbnet", "darts"], "text": "x"}).to_parquet(tmp_path / "t.parquet")
    if ending == ".csv":
        path.write_text("space,text\ndarts,x\n,x\nfbnet,x\n")
    elif ending == ".jsonl":
        path.write_text('{"space": "darts"}\n{"text": "x"}\n{"space": "fbnet"}\n')
    assert open_table(path, ("text",)).space_names() == {"darts", "", "fbnet"}


def test_of_a_table_without_spaces_every_row_names_none(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text\nx\n")
    assert open_table(path).space_names() == {""}


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_a_space_of_ones_own_is_found_from_the_table(
    kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/mine.py").write_text("")
    names = ["mine.py:Mine", "work/mine.py:Mine", "nasbench201", None]
    columns = {"architecture": list("abcd"), "space": pa.array(names, kind)}
    pq.write_table(pa.table(columns), tmp_path / "work/table.parquet")
    monkeypatch.chdir(tmp_path)
    table = open_table(Path("work/table.parquet"))
    assert table.whole()["space"].to_pylist() == ["work/mine.py:Mine", *names[1:]]
    assert table.space_names() == {"work/mine.py:Mine", "nasbench201", ""}
    (batch,) = table.batches_of_space("work/mine.py:Mine", 9)
    assert list(batch.numbers) == [0, 1]
