"""The benchmark of texts: what it compares with is the same network, and it runs."""

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings

from benchmarks.flat_text import to_flat_text
from converters import to_graph
from converters.text import parse
from spaces import get_space, space_names
from tests.benchmarks.texts import Config, main, measure
from tests.converters.graphs import random_graphs
from tests.converters.numerics import draw_weights, relative_error, run
from tests.spaces.contract import rng


@settings(max_examples=10, deadline=None)
@given(random_graphs())
def test_flat_text_computes_the_same(faithful):
    weights = draw_weights(faithful)
    tensors = [x for node in faithful.nodes for name in node.weights for x in _owned(node.op_type, weights[name])]
    model = parse(to_flat_text(faithful)).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    image = np.random.default_rng(0).standard_normal(faithful.shapes[faithful.inputs[0]], dtype=np.float32)
    feed = [image, *[tensor.astype(np.float32) for tensor in tensors]]
    outputs = session.run(None, dict(zip([x.name for x in session.get_inputs()], feed, strict=True)))
    assert relative_error(outputs, run(faithful, weights)) < 1e-4


def _owned(op_type, tensors):
    return tensors[:1] if op_type in ("nn.Conv", "nn.Linear") else tensors


@pytest.mark.parametrize("name", ["fbnet", "nds_enas", "ofa_mobilenetv3"])
def test_flat_text_is_standard_onnx(name):
    space = get_space(name)
    model = parse(to_flat_text(to_graph(space, space.sample(rng(0)))))
    onnx.checker.check_model(model, full_check=True)
    assert not model.functions
    assert {node.domain for node in model.graph.node} == {""}


def test_every_space_is_measured_unless_some_are_named():
    assert Config().spaces == space_names()


def test_a_row_for_every_space():
    rows = {row.space: row for row in measure(Config(architectures=2, exports=1, spaces=("hiaml", "two_path")))}
    assert [*rows] == ["hiaml", "two_path"]
    assert all(row.times_fewer_tokens > 1 and row.texts_per_second.low > 0 for row in rows.values())
    assert min(rows["hiaml"].export_seconds[exporter] for exporter in ("default", "TorchScript")) > 0
    assert rows["two_path"].export_seconds == {}


def test_less_than_one_architecture_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit):
        main(["--architectures", "0"])
    assert capsys.readouterr().err == "--architectures: expected 1 or more, got 0.\n"
