"""What the converter of every space must match: goldens of the reference networks, published tables, its own text.

Inherit GoldenContract, name the space, and say which goldens are small enough to run.
"""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import pytest

from converters import model_to_onnx_text, to_graph, to_model, to_onnx_text
from converters.statistics import statistics
from converters.text import parse, print_model
from spaces import SearchSpace, get_space
from tests.spaces.contract import read_goldens

TABLES = Path(__file__).parents[3] / "shared" / "data"


def notation(row: dict[str, Any]) -> str:
    """The genotype of a golden as a user would write it."""
    genotype = row["genotype"]
    return genotype if isinstance(genotype, str) else json.dumps(genotype)


def read_table(name: str) -> Any:
    """The published table of a space; the test is skipped where there is none."""
    path = TABLES / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"the published table is not at {path}")
    return pytest.importorskip("pandas").read_parquet(path)


def some_rows(table: Any) -> Any:
    """About a hundred rows of a table, evenly spread."""
    return table.iloc[:: math.ceil(len(table) / 100)]


def published_counts(row: dict[str, Any]) -> dict[str, int]:
    """What a golden says of its network, auxiliary head aside; where it does not speak of live parts, all is live."""
    counts = {name: row[name] for name in ("params", "macs", "convs")}
    counts["params"] = row.get("params_without_aux", row["params"])
    return counts | {f"live_{name}": row.get(f"live_{name}", row[name]) for name in ("macs", "convs")}


def operators(space: SearchSpace[Any], architecture: Any) -> Counter[str]:
    """How often each operator stands in the faithful graph: what parameters and multiplications do not show."""
    return Counter(node.op_type for node in to_graph(space, architecture).nodes)


def run(onnx_text: str) -> np.ndarray:
    """The output of a text's model in ONNX Runtime, for random input."""
    session = onnxruntime.InferenceSession(to_model(onnx_text).SerializeToString(), providers=["CPUExecutionProvider"])
    (image,) = session.get_inputs()
    (output,) = session.run(None, {image.name: np.random.default_rng(0).random(image.shape, dtype=np.float32)})
    return np.asarray(output)


class GoldenContract:
    """Every golden is counted; some are printed, fewer read again as a model; those at ``run_rows`` are run."""

    space_name: ClassVar[str]
    run_rows: ClassVar[tuple[int, ...]] = (0, 1)

    @pytest.fixture
    def space(self) -> SearchSpace[Any]:
        return get_space(self.space_name)

    @pytest.fixture
    def goldens(self) -> list[dict[str, Any]]:
        return read_goldens(self.space_name)

    def test_counts_and_shapes_are_those_of_the_reference(self, space, goldens):
        for row in goldens:
            graph = to_graph(space, space.parse(notation(row)))
            counts, expected = statistics(graph), published_counts(row)
            assert {name: getattr(counts, name) for name in expected} == expected, row["genotype"]
            assert [graph.shapes[x] for x in graph.inputs] == [tuple(row["input_shape"])], row["genotype"]
            assert [graph.shapes[x] for x in graph.outputs] == [tuple(row["output_shape"])], row["genotype"]

    def test_text_is_what_the_printer_prints(self, space, goldens):
        for row in goldens[::5]:
            onnx_text = to_onnx_text(space, space.parse(notation(row)))
            assert print_model(parse(onnx_text)) == onnx_text, row["genotype"]

    def test_text_read_again_as_a_model_is_the_same(self, space, goldens):
        for row in goldens[::20]:
            onnx_text = to_onnx_text(space, space.parse(notation(row)))
            assert model_to_onnx_text(to_model(onnx_text)) == onnx_text, row["genotype"]

    def test_runs_in_onnx_runtime(self, space, goldens):
        for index in self.run_rows:
            row = goldens[index]
            output = run(to_onnx_text(space, space.parse(notation(row))))
            assert output.shape == tuple(row["output_shape"]), row["genotype"]
            assert np.isfinite(output).all(), row["genotype"]


class TableContract:
    """The published table's rows parse, and its label columns are the space's objectives."""

    space_name: ClassVar[str]

    @pytest.mark.shared
    def test_rows_parse(self):
        self.check_rows(read_table(self.space_name)["architecture"].iloc[::10])

    @pytest.mark.shared
    @pytest.mark.slow
    def test_every_row_parses(self):
        self.check_rows(read_table(self.space_name)["architecture"])

    def check_rows(self, notations):
        space = get_space(self.space_name)
        for text in notations:
            architecture = space.parse(text)
            assert space.parse(space.format(architecture)) == architecture
            assert space.decode(space.encode(architecture)) == architecture

    @pytest.mark.shared
    def test_objectives_are_its_label_columns(self):
        columns = read_table(self.space_name).columns
        assert {*get_space(self.space_name).objectives} == {column for column in columns if "@" in column}


class CountedTableContract(TableContract):
    """The columns ``params`` and ``macs`` hold what the converter's graph counts."""

    @pytest.mark.shared
    def test_published_counts(self):
        space, table = get_space(self.space_name), read_table(self.space_name).dropna(subset=["params", "macs"])
        for row in some_rows(table).to_dict("records"):
            counts = statistics(to_graph(space, space.parse(row["architecture"])))
            assert (counts.params, counts.macs) == (row["params"], row["macs"]), row["architecture"]
