"""Any code to metric: the Code-Regression table is imported, learned and asked about a program."""

import json
from pathlib import Path

import yaml

from studies.tables.files import objective_columns, read_table
from tests.converters.importers.test_code_regression import ROWS, write
from tests.nasrlm.conftest import CommandLine


def test_a_model_learns_from_it(tmp_path: Path, nasrlm: CommandLine) -> None:
    programs = [
        row | {"input": f"x = [0] * {10 * number}\n{row['input']}", "target": float(row["target"]) * (number + 1)}
        for number in range(24)
        for row in ROWS
    ]
    table = tmp_path / "code.parquet"
    imported = nasrlm("import", "code-regression", write(tmp_path / "data.parquet", programs), "--out", table, "--json")
    assert json.loads(imported.stdout)["rows"] == len(programs)
    learned = objective_columns(read_table(table), table)
    assert set(learned) == {"memory_bytes@apps", "memory_bytes@codenet", "latency_ms@kernelbook"}
    sizes = {"width": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "hidden": 32}
    config = {"table": str(table), "out": str(tmp_path / "run"), "tokenizer": "code", "model": sizes, "max_steps": 2}
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(config))
    trained = json.loads(nasrlm("train", "--config", tmp_path / "train.yaml", "--json").stdout)
    assert trained["steps"] == 2
    source = tmp_path / "mine.txt"
    source.write_text("print([0] * 10 ** 6)\n")
    answer = nasrlm("predict", source, "--checkpoint", trained["checkpoint"], "--engine", "torch", "--json")
    assert set(json.loads(answer.stdout)[0]) == {"architecture", *learned}
