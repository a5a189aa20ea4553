"""Finding the converter of a space, and importing the package."""

import subprocess
import sys
from importlib import import_module
from typing import ClassVar

import numpy as np
import pytest
from onnx import ModelProto
from torch import nn

from converters import (
    OnnxModelError,
    graph_to_onnx_text,
    model_to_graph,
    model_to_onnx_text,
    statistics,
    to_canonical_graph,
    to_graph,
    to_model,
    to_onnx_text,
)
from converters.builder import GraphBuilder
from converters.graph import Graph
from spaces import GenotypeSpace, Spellings, get_space
from spaces.nasbench201 import NASBench201
from tests.spaces.contract import rng


class Homemade(NASBench201):
    """A user's own space brings its converter along."""

    name = "homemade"

    def build(self, architecture) -> Graph:
        g = GraphBuilder((1, 3, 8, 8))
        return g.build(g.relu(g.conv(g.input, len(set(architecture.operations)), kernel=3)))


class Unconvertible(NASBench201):
    name = "unconvertible"


def test_a_space_may_build_its_own_graph():
    space = Homemade()
    architecture = space.from_official_index(6111)
    assert [node.op_type for node in to_graph(space, architecture).nodes] == ["nn.Conv", "Relu"]
    assert "nn.Conv <pads: ints = [1, 1, 1, 1], weight_shape: ints = [3, 3, 3, 3]>" in to_onnx_text(space, architecture)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda g: g.multiply(g.input, g.sigmoid(g.input)), lambda g: g.silu(g.input)),
        (lambda g: g.average_pool(g.input, kernel=8), lambda g: g.global_average_pool(g.input)),
        (lambda g: g.reshape(g.input, 1, 192), lambda g: g.flatten(g.input)),
        (lambda g: g.relu(g.concat(g.input)), lambda g: g.relu(g.input)),
    ],
)
def test_a_users_own_graph_may_spell_layers_as_it_likes(one, other):
    def text(spelled):
        class Mine(Homemade):
            def build(self, architecture) -> Graph:
                g = GraphBuilder((1, 3, 8, 8))
                return g.build(spelled(g))

        return to_onnx_text(Mine(), Mine().from_official_index(0))

    assert text(one) == text(other)
    assert model_to_onnx_text(to_model(text(one))) == text(one)


def test_a_space_without_converter_is_told_how_to_get_one():
    space = Unconvertible()
    message = r"'unconvertible': expected a module converters/unconvertible\.py or a method Unconvertible\.build"
    with pytest.raises(ValueError, match=message):
        to_graph(space, space.from_official_index(0))


@pytest.mark.parametrize(
    ("built", "ending"),
    [
        (None, r"g\.build\(output\)` of a GraphBuilder `g`\."),
        ("text", r"g\.build\(output\)` of a GraphBuilder `g`\."),
        (GraphBuilder((1, 3, 8, 8)), r"g\.build\(output\)` of a GraphBuilder `g`\."),
        (ModelProto(), r"model_to_graph\(model\)` of converters\."),
        (nn.ReLU(), r"model_to_graph\(export_module\(module, input_shape\)\)` of converters\."),
    ],
)
def test_a_space_that_builds_no_graph_is_told_what_to_return(built, ending):
    class Returning(Homemade):
        def build(self, architecture):
            return built

    space = Returning()
    got = type(built).__name__
    message = rf"Returning\.build: expected a converters\.graph\.Graph, got {got}\. End it with `return {ending}"
    for given in (space, Spellings(space)):
        with pytest.raises(ValueError, match=message):
            to_graph(given, space.from_official_index(0))


@pytest.mark.parametrize("stem", ["graph", "hiaml", "nds", "text"])
def test_a_users_file_may_be_called_like_a_module_of_ours(stem, tmp_path, monkeypatch):
    """Neither the name of the file nor that of the space finds a converter that was made for other architectures."""
    source = f"from spaces.nasbench201 import NASBench201\nclass Mine(NASBench201):\n    name = {stem!r}\n"
    (tmp_path / f"{stem}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, stem, raising=False)
    spaces = [import_module(stem).Mine(), get_space(f"{tmp_path / stem}.py:Mine")]
    monkeypatch.delitem(sys.modules, stem)
    for space in spaces:
        with pytest.raises(ValueError, match=rf"{stem!r}: expected .* a method Mine\.build"):
            to_graph(space, space.from_official_index(0))


def test_a_space_that_keeps_its_name_keeps_its_converter():
    class Narrower(type(get_space("nds_darts"))):
        pass

    space = Narrower()
    architecture = space.sample(rng(0))
    assert to_onnx_text(space, architecture) == to_onnx_text(get_space("nds_darts"), architecture)


@pytest.mark.parametrize("name", ["nasbench201", "nds_pnas"])
def test_spellings_are_built_as_in_their_space(name):
    space = get_space(name)
    architecture = space.sample(rng(0))
    assert to_onnx_text(Spellings(space), architecture) == to_onnx_text(space, architecture)


def test_canonical_graph_is_flat():
    space = NASBench201()
    live = to_canonical_graph(to_graph(space, space.from_official_index(6111)))
    assert live.functions == ()
    assert not [node for node in live.nodes if node.op_type.startswith("block.")]


def test_import_leaves_onnxruntime_alone():
    script = "import sys, converters; print(*({'torch', 'onnxruntime'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


class Failing(NASBench201):
    name = "failing"

    def build(self, architecture) -> Graph:
        raise KeyError("width")


def test_what_a_users_space_raises_carries_the_architecture():
    space = Failing()
    architecture = space.from_official_index(6111)
    with pytest.raises(KeyError) as raised:
        to_graph(space, architecture)
    assert raised.value.__notes__ == [f"architecture {space.format(architecture)}"]


def test_what_is_no_space_or_no_architecture_is_told():
    space = get_space("nasbench201")
    with pytest.raises(
        ValueError,
        match=r"to_graph: expected a search space, got 'nasbench201'\. Load one by name with spaces\.get_space",
    ):
        to_onnx_text("nasbench201", space.decode((0,) * 6))
    with pytest.raises(
        ValueError, match=r"expected an architecture of nasbench201, got text, '\|none.* with the space's method parse"
    ):
        to_onnx_text(space, "|none~0|")
    for genotype in ([0] * 6, (0,) * 6, np.zeros(6, dtype=int)):
        with pytest.raises(ValueError, match=r"expected an architecture of nasbench201, got .*0, 0.*its method decode"):
            to_onnx_text(space, genotype)
    darts = get_space("darts")
    for wrong in (None, 3, {"edges": []}, darts.sample(np.random.default_rng(0)), type(space.decode((0,) * 6))):
        with pytest.raises(ValueError, match=r"expected an architecture of nasbench201, got .*its method decode"):
            to_onnx_text(space, wrong)


def test_an_own_space_of_choices_takes_no_notation():
    class Depths(GenotypeSpace):
        name = "depths"
        choices: ClassVar = {"depth": (1, 2)}

        def build(self, architecture):
            g = GraphBuilder((1, 3, 8, 8))
            return g.build(g.conv(g.input, 4 * architecture["depth"], kernel=3))

    for space in (Depths(), Spellings(Depths())):
        assert "nn.Conv" in to_onnx_text(space, space.decode((1,)))
        for wrong in ("[2]", (1,), None):
            with pytest.raises(ValueError, match=r"expected an architecture of depths, got .*the space's method parse"):
                to_onnx_text(space, wrong)


@pytest.mark.parametrize("given", [None, "v0", ModelProto()])
def test_what_is_no_graph_is_refused(given):
    for function in (to_canonical_graph, graph_to_onnx_text, statistics):
        with pytest.raises(ValueError, match=r"graph: expected a converters\.Graph, got .*with model_to_graph\."):
            function(given)


@pytest.mark.parametrize("given", [None, 3, [], nn.ReLU()])
def test_what_is_no_model_is_refused(given):
    with pytest.raises(OnnxModelError, match=r"expected an ONNX model or the path of one, got \w+\. Convert a torch"):
        model_to_onnx_text(given)


def test_text_in_place_of_a_path_is_told():
    space = get_space("nasbench201")
    with pytest.raises(
        OnnxModelError,
        match=r"^expected the path of an ONNX model, got text, '<.*Convert ONNX text with converters\.to_model",
    ):
        model_to_graph(to_onnx_text(space, space.decode((0,) * 6)))
