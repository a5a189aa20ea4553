"""Counts of hand-made graphs; those of whole networks are compared with goldens."""

import numpy as np
import pytest

from converters import Statistics, model_to_graph, model_to_onnx_text, statistics, to_model
from converters.builder import GraphBuilder
from tests.converters.graphs import conv, graph, node
from tests.converters.onnx_models import QUANTISED, model, tensor

IMAGE = (1, 6, 8, 8)


def count(build) -> Statistics:
    g = GraphBuilder(IMAGE)
    return statistics(g.build(build(g)))


def test_a_convolution():
    counts = count(lambda g: g.conv(g.input, 4, kernel=3, stride=2))
    assert (counts.params, counts.macs, counts.convs) == (4 * 6 * 9, 4 * 4 * 4 * 6 * 9, 1)
    assert (counts.live_macs, counts.live_convs) == (counts.macs, counts.convs)
    assert counts.activations == 4 * 4 * 4


def test_groups_divide_weights_and_work():
    counts = count(lambda g: g.conv(g.input, 12, kernel=3, groups=3))
    assert (counts.params, counts.macs) == (12 * 2 * 9, 12 * 8 * 8 * 2 * 9)


def test_bias_is_weight_but_no_work():
    plain, biased = (count(lambda g, bias=bias: g.conv(g.input, 4, kernel=1, bias=bias)) for bias in (False, True))
    assert biased.params - plain.params == 4
    assert biased.macs == plain.macs


def test_a_batch_norm_is_weight_but_no_work():
    counts = count(lambda g: g.batch_norm(g.conv(g.input, 4, kernel=1)))
    assert (counts.params, counts.macs) == (4 * 6 + 2 * 4, 8 * 8 * 4 * 6)
    assert counts.nodes == 1  # folded


@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_layer(bias):
    counts = count(lambda g: g.linear(g.flatten(g.global_average_pool(g.input)), 10, bias=bias))
    assert (counts.params, counts.macs) == (60 + 10 * bias, 60)
    assert (counts.convs, counts.activations, counts.nodes, counts.depth) == (0, 0, 3, 3)


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_weights_count_as_the_numbers_that_they_stand_for(name):
    weights = [tensor("q", 4, 2, 3, 3, dtype=np.int8), tensor("b", 4, dtype=np.int32)]
    scales = [tensor("z", dtype=np.int8), tensor("s")]
    ends = "(float[1,2,5,5] x) => (float[1,4,3,3] y)"
    counts = statistics(model_to_graph(model(f"{ends} {{ {QUANTISED[name]} }}", *weights, *scales)))
    assert counts.params == 4 * 2 * 9 + 4
    assert (counts.macs, counts.convs, counts.activations) == (9 * 4 * 2 * 9, 1, 4 * 9)


@pytest.mark.parametrize(
    ("text", "ends", "shape", "macs"),
    [
        ("y = ConvInteger (x, q)", "(uint8[1,2,5,5] x) => (int32[1,4,3,3] y)", (4, 2, 3, 3), 9 * 4 * 2 * 9),
        ("y = MatMulInteger (x, q)", "(uint8[3,4] x) => (int32[3,5] y)", (4, 5), 3 * 4 * 5),
        ("y = MatMulInteger (q, x)", "(uint8[4,3] x) => (int32[5,3] y)", (5, 4), 3 * 4 * 5),
        ("y = QLinearMatMul (x, s, z, q, s, z, s, z)", "(int8[3,4] x) => (int8[3,5] y)", (4, 5), 3 * 4 * 5),
        ("y = QLinearMatMul (q, s, z, x, s, z, s, z)", "(int8[4,3] x) => (int8[5,3] y)", (5, 4), 3 * 4 * 5),
    ],
)
def test_operators_on_integers_cost_as_much_as_those_on_floats(text, ends, shape, macs):
    held = tensor("q", *shape, dtype=np.int8), tensor("s"), tensor("z", dtype=np.int8)
    assert statistics(model_to_graph(model(f"{ends} {{ {text} }}", *held))).macs == macs


@pytest.mark.parametrize("turned", [0, 1])
def test_a_layer_of_onnx_runtime_on_integers_counts_without_its_scales(turned):
    scales = [tensor("s"), tensor("z", dtype=np.int8), tensor("t", 5), tensor("u", 5, dtype=np.int8)]
    held = tensor("q", *((5, 4) if turned else (4, 5)), dtype=np.int8), tensor("b", 5, dtype=np.int32)
    text = f"y = com.microsoft.QGemm <transB = {turned}> (x, s, z, q, t, u, b, s, z)"
    ends = "(int8[3,4] x) => (int8[3,5] y)"
    proto = model(f"{ends} {{ {text} }}", *held, *scales, domain="com.microsoft")
    counts = statistics(model_to_graph(proto))
    assert (counts.params, counts.macs) == (4 * 5 + 5, 3 * 4 * 5)


def test_weights_of_few_bits_that_an_unknown_operator_reads_are_refused():
    text = "y = com.microsoft.MatMulNBits <K = 64, N = 5, bits = 4, block_size = 32> (x, q, s)"
    held = tensor("q", 5, 2, 16, dtype=np.uint8), tensor("s", 10)
    proto = model(f"(float[3,64] x) => (float[3,5] y) {{ {text} }}", *held, domain="com.microsoft")
    with pytest.raises(ValueError, match=r"are known, got com\.microsoft\.MatMulNBits with weights"):
        statistics(model_to_graph(proto))


def test_a_product_of_integers_without_weights_costs_nothing():
    ends = "(uint8[3,4] x, int8[4,5] u) => (int32[3,5] y)"
    assert statistics(model_to_graph(model(f"{ends} {{ y = MatMulInteger (x, u) }}"))).macs == 0


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_a_recurrent_layer_costs_its_matrices_in_every_step(kind, gates, directions):
    ends = f"(float[5,2,8] x) => (float[5,{directions},2,6] y)"
    direction = "bidirectional" if directions == 2 else "forward"
    text = f'y = {kind} <hidden_size = 6, direction = "{direction}"> (x, w, r, b)'
    rows = gates * 6
    held = tensor("w", directions, rows, 8), tensor("r", directions, rows, 6), tensor("b", directions, 2 * rows)
    proto = model(f"{ends} {{ {text} }}", *held)
    expected = (directions * rows * (8 + 6 + 2), 5 * 2 * directions * rows * (8 + 6))
    for given in (proto, to_model(model_to_onnx_text(proto))):
        counts = statistics(model_to_graph(given))
        assert (counts.params, counts.macs) == expected


def test_the_matrices_of_a_recurrent_layer_may_be_joined_from_quantised_ones():
    parts = "u = DequantizeLinear (q, s, z)  w = Concat <axis = 1> (u, u, u)"
    text = f"{parts}  y = GRU <hidden_size = 4> (x, w, w)"
    held = tensor("q", 1, 4, 4, dtype=np.int8), tensor("s"), tensor("z", dtype=np.int8)
    counts = statistics(model_to_graph(model(f"(float[5,2,4] x) => (float[5,1,2,4] y) {{ {text} }}", *held)))
    assert (counts.params, counts.macs) == (16, 5 * 2 * 12 * (4 + 4))


@pytest.mark.parametrize(
    "weights",
    [
        "i = QuantizeLinear (w, s, z)  u = DequantizeLinear (i, s, z)  y = MatMul (x, u)",
        "u = DequantizeLinear (q, s, z)  t = Transpose <perm = [1,0]> (u)  y = MatMul (x, t)",
    ],
)
def test_weights_that_are_quantised_or_turned_on_the_way_count(weights):
    held = [tensor("w", 4, 4), tensor("q", 4, 4, dtype=np.int8), tensor("s"), tensor("z", dtype=np.int8)]
    counts = statistics(model_to_graph(model(f"(float[3,4] x) => (float[3,4] y) {{ {weights} }}", *held)))
    assert (counts.params, counts.macs) == (16, 3 * 4 * 4)


def test_scales_of_channels_are_no_parameters():
    kinds = tensor("q", 4, 2, 1, 1, dtype=np.int8), tensor("s", 4), tensor("z", 4, dtype=np.int8)
    text = "w = DequantizeLinear <axis = 0> (q, s, z)  y = Conv (x, w)"
    counts = statistics(model_to_graph(model(f"(float[1,2,5,5] x) => (float[1,4,5,5] y) {{ {text} }}", *kinds)))
    assert (counts.params, counts.macs) == (8, 25 * 8)


def test_dead_branches_count_only_as_built():
    counts = count(lambda g: g.add(g.relu(g.input), g.zero(g.conv(g.input, 6, kernel=3))))
    assert (counts.params, counts.convs) == (6 * 6 * 9, 1)
    assert (counts.live_macs, counts.live_convs, counts.nodes, counts.activations) == (0, 0, 1, 0)


def test_depth_is_the_longest_path():
    counts = count(lambda g: g.add(g.relu(g.input), g.sigmoid(g.relu(g.sigmoid(g.input)))))
    assert (counts.nodes, counts.depth) == (5, 4)


def test_shared_weights_count_once():
    shared = graph(conv("x", "a", "w"), node("Relu", "a", "b"), conv("b", "c", "w"), outputs="c")
    counts = statistics(shared)
    assert (counts.params, counts.convs, counts.macs) == (4, 2, 2 * 16 * 4)


def test_a_network_that_hands_its_input_on():
    counts = statistics(graph(outputs="x"))
    assert counts == Statistics(0, 0, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("graph", "weight", "macs", "convs"),
    [
        (
            "(float16[1,3,8,8] x) => (float16[1,4,8,8] y) { y = Conv <pads = [1,1,1,1]> (x, w) }",
            (4, 3, 3, 3),
            64 * 4 * 27,
            1,
        ),
        (
            "(float[1,4,8,8] x) => (float[1,3,17,17] y) { y = ConvTranspose <strides = [2,2]> (x, w) }",
            (4, 3, 3, 3),
            64 * 4 * 27,
            1,
        ),
        (
            "(float[1,3,8,8] x, float[1,18,6,6] o) => (float[1,4,6,6] y) { y = DeformConv (x, w, o) }",
            (4, 3, 3, 3),
            36 * 4 * 27,
            1,
        ),
        ("(float16[2,5,4] x) => (float16[2,5,27] y) { y = MatMul (x, w) }", (4, 27), 10 * 4 * 27, 0),
        ("(float16[10,4] x) => (float16[10,27] y) { y = Gemm (x, w) }", (4, 27), 10 * 4 * 27, 0),
        ("(float16[10,4] x) => (float16[10,27] y) { y = Gemm <transB = 1> (x, w) }", (27, 4), 10 * 4 * 27, 0),
        ("(float[4,10] x) => (float[27,10] y) { y = MatMul (w, x) }", (27, 4), 10 * 4 * 27, 0),
        ("(float[2,4,5] x) => (float[2,27,5] y) { y = MatMul (w, x) }", (27, 4), 10 * 4 * 27, 0),
        ("(float[108,4] x) => (float[4] y) { y = MatMul (w, x) }", (108,), 4 * 108, 0),
        ("(float[4,10] x) => (float[27,10] y) { y = Gemm <transA = 1> (w, x) }", (4, 27), 10 * 4 * 27, 0),
        ('(float[2,5,4] x) => (float[2,5,27] y) { y = Einsum <equation = "bnd, de->bne"> (x, w) }', (4, 27), 1080, 0),
        ('(float[2,5,4] x) => (float[2,5,27] y) { y = Einsum <equation = "...d,ed"> (x, w) }', (27, 4), 1080, 0),
        ('(float[5,4] x) => (float[5] y) { y = Einsum <equation = "nd,ad->n"> (x, w) }', (27, 4), 540, 0),
        ('(float[5,4] x) => (float[5,108] y) { y = Einsum <equation = "nd,de->ne"> (x, w) }', (1, 108), 2160, 0),
        (
            '(float[5,4] x, float[5,9] z) => (float[5,3] y) { y = Einsum <equation = "ni,nj,kij->nk"> (x, z, w) }',
            (3, 4, 9),
            5 * 3 * 4 * 9,
            0,
        ),
        (
            '(float16[5,4] x) => (float16[27,5] y) { m = MatMul (x, w) y = Einsum <equation = "ij->ji"> (m) }',
            (4, 27),
            540,
            0,
        ),
    ],
)
def test_layers_that_stay_plain_operators_are_counted(graph, weight, macs, convs):
    half = np.float16 if "float16" in graph else np.float32
    counted = statistics(model_to_graph(model(graph, tensor("w", *weight, dtype=half))))
    assert (counted.macs, counted.convs, counted.params) == (macs, convs, 4 * 27)


def test_a_weight_is_no_activation():
    embedding = model("(int64[1,4] x) => (float[1,4,8] y) { y = Gather (w, x) }", tensor("w", 100, 8))
    assert statistics(model_to_graph(embedding)).largest_activation == 4 * 8
