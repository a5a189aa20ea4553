"""What every spelling of ``normalise`` promises, on random models of standard operators."""

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

from converters import graph_to_onnx_text, model_to_graph, model_to_onnx_text, to_model
from converters.convert import to_canonical_graph
from converters.graph import Graph
from converters.models.onnx_graph import read_graph
from converters.models.onnx_model import prepare
from converters.passes.normalise import SPELLINGS, normalise
from converters.passes.rewriting import rewrite
from converters.text import parse, print_model
from tests.converters.exported import exported_models
from tests.converters.graphs import scramble
from tests.converters.numerics import relative_error, run, run_model, weights_of_model
from tests.converters.promises import kept


def arrays_of(model: ModelProto, graph: Graph) -> dict[str, np.ndarray]:
    """Weights of the model, and constants of the graph: either may become part of a layer."""
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    constants = {node.outputs[0]: node.attributes[0][1] for node in graph.nodes if node.op_type == "Constant"}
    return arrays | {x: np.asarray(value) for x, value in constants.items()}


def one_after_another_they_keep_the_numbers(model):
    expected, graph = run_model(model), read_graph(prepare(model))
    arrays, before = arrays_of(model, graph), ()
    for step in (lambda graph: graph, *SPELLINGS_ALONE, to_canonical_graph):
        graph = step(graph)
        if graph.nodes != before:
            assert relative_error(run(graph, weights_of_model(graph, arrays)), expected) < 1e-4, step
        before = graph.nodes


def each_by_itself_keeps_the_numbers(model, spelling):
    expected, graph = run_model(model), read_graph(prepare(model))
    spelled = rewrite(graph, spelling)
    assert relative_error(run(spelled, weights_of_model(spelled, arrays_of(model, graph))), expected) < 1e-4


def nothing_is_left_to_spell(model):
    """NOTE: but scales, as below."""
    graph = model_to_graph(model)
    onnx_text = graph_to_onnx_text(graph)
    assert graph_to_onnx_text(normalise(graph)) == onnx_text or "nn.Scale" in onnx_text


def order_and_names_do_not_matter(model, random):
    graph = read_graph(prepare(model))
    scrambled = normalise(scramble(graph, random))
    assert graph_to_onnx_text(scrambled) == graph_to_onnx_text(normalise(graph))


def text_is_printed_and_read_as_it_stands(model):
    """NOTE: read again, a scale that a sum of equal operands came to joins the scales around it, and what layers make
    of a zero, which the reference counts call live, is a weight.
    """
    onnx_text = model_to_onnx_text(model)
    assert print_model(parse(onnx_text)) == onnx_text
    changes = "nn.Scale" in onnx_text or "nn.Zeros" in onnx_text
    assert model_to_onnx_text(to_model(onnx_text)) == onnx_text or changes


SPELLINGS_ALONE = [lambda graph, spelling=spelling: rewrite(graph, spelling) for spelling in SPELLINGS]
MODELS, RANDOM = exported_models(), st.randoms(use_true_random=False)
PROPERTIES = {
    one_after_another_they_keep_the_numbers: (20, (MODELS,)),
    each_by_itself_keeps_the_numbers: (20, (MODELS, st.sampled_from(SPELLINGS))),
    nothing_is_left_to_spell: (20, (MODELS,)),
    order_and_names_do_not_matter: (20, (MODELS, RANDOM)),
    text_is_printed_and_read_as_it_stands: (10, (MODELS,)),
}


test_promises = kept(PROPERTIES)
