"""Every pass alone on tiny graphs; what all of them keep is in test_properties.py."""

from dataclasses import replace

import pytest

from converters.convert import to_canonical_graph, to_graph
from converters.graph import Graph
from converters.passes.simplify import (
    drop_identities,
    fold_batch_norms,
    merge_equal_values,
    propagate_zeros,
    remove_dead_nodes,
    simplify,
)
from converters.passes.sums import flatten_sums
from spaces.nasbench201 import NASBench201
from tests.converters.graphs import batch_norm, conv, graph, node
from tests.converters.numerics import draw_weights, relative_error, run
from tests.spaces.contract import rng

ZERO = node("Constant", "", "0", value_float=0.0)


def spelled(simplified: Graph) -> list[str]:
    """``output = operator(inputs)`` of every node, operands of sums sorted."""
    return [f"{n.outputs[0]} = {n.op_type}({' '.join(sorted(n.inputs))})" for n in simplified.nodes]


class TestFoldBatchNorms:
    def test_a_batch_norm_goes_into_the_convolution_before_it(self):
        folded = fold_batch_norms(graph(conv("x", "a", "w"), batch_norm("a", "b", "n"), outputs="b"))
        assert spelled(folded) == ["b = nn.ConvBias(x)"]
        assert folded.nodes[0].weights == ("w", "n")
        assert folded.nodes[0].attributes == (("weight_shape", (2, 2, 1, 1)),)

    def test_several_in_a_row_go_into_it_too(self):
        norms = (batch_norm("a", "b", "m"), batch_norm("b", "c", "n"))
        folded = fold_batch_norms(graph(conv("x", "a", "w"), *norms, outputs="c"))
        assert spelled(folded) == ["c = nn.ConvBias(x)"]
        assert folded.nodes[0].weights == ("w", "m", "n")

    @pytest.mark.parametrize("outputs", ["b c", "b a"])
    def test_not_if_something_else_reads_the_convolution(self, outputs):
        nodes = (conv("x", "a", "w"), batch_norm("a", "b", "n"), node("Relu", "a", "c"))
        read_twice = graph(*nodes[: 2 + outputs.count("c")], outputs=outputs)
        assert spelled(fold_batch_norms(read_twice)) == spelled(read_twice)

    @pytest.mark.parametrize(("shape", "left"), [((3, 2), 1), ((1, 2, 2), 2)])
    def test_a_linear_layer_takes_it_in_where_both_have_the_same_channels(self, shape, left):
        layer = node("nn.Linear", "x", "a", weights="w", weight_shape=(2, 2))
        rows = replace(
            graph(layer, batch_norm("a", "b", "n"), outputs="b"), shapes=dict.fromkeys(("x", "a", "b"), shape)
        )
        folded = fold_batch_norms(rows)
        assert len(folded.nodes) == left
        assert folded.nodes[0].op_type == ("nn.LinearBias" if left == 1 else "nn.Linear")
        weights = draw_weights(rows)
        if left == 1:  # the scene's Gemm, by which layers are run, takes rows alone
            assert relative_error(run(folded, weights), run(rows, weights)) < 1e-5

    @pytest.mark.parametrize("bias", ["", " b0"])
    def test_a_transposed_convolution_reads_it_as_bias(self, bias):
        weights = [node("nn.Weight", "", name, weights=name, weight_shape=(2,)) for name in f"w{bias}".split()]
        norms = (batch_norm("a", "b", "m"), batch_norm("b", "c", "n"))
        layer = node("ConvTranspose", f"x w{bias}", "a")
        folded = fold_batch_norms(graph(*weights, layer, *norms, node("Relu", "c", "d"), outputs="d"))
        assert spelled(simplify(folded))[-2:] == [f"c = ConvTranspose({bias.strip() or 'b.bias'} w x)", "d = Relu(c)"]
        assert [n.op_type for n in folded.nodes] == ["nn.Weight", "nn.Weight", "ConvTranspose", "Relu"]

    def test_not_a_transposed_convolution_whose_weights_are_computed(self):
        computed = graph(node("ConvTranspose", "x x", "a"), batch_norm("a", "b", "n"), outputs="b")
        assert spelled(fold_batch_norms(computed)) == spelled(computed)

    def test_not_without_a_convolution_before_it(self):
        lonely = graph(node("Relu", "x", "a"), batch_norm("a", "b", "n"), outputs="b")
        assert spelled(fold_batch_norms(lonely)) == spelled(lonely)


class TestPropagateZeros:
    def test_sums_drop_zeros(self):
        zero = node("Mul", "x 0", "z")
        simplified = propagate_zeros(graph(ZERO, zero, node("Sum", "x z x", "a"), outputs="a"))
        assert spelled(simplified)[-1] == "a = Sum(x x)"

    def test_zero_passes_through_operators_that_keep_it(self):
        copied = (node("Mul", "0 x", "z"), node("Identity", "z", "i"))
        chain = (*copied, node("Relu", "i", "a"), node("MaxPool", "a", "b"), node("Sum", "b z", "c"))
        simplified = propagate_zeros(graph(ZERO, *chain, node("Sum", "c x", "d"), outputs="d"))
        assert spelled(simplified) == ["0 = Constant()", "d = Sum(x)"]

    def test_zeros_make_zeros_of_operators_that_read_nothing_else(self):
        nodes = (
            node("Mul", "0 x", "z"), node("Neg", "z", "n"), node("Concat", "z n", "c", axis=1),
            node("nn.Clip", "c", "k", max=6.0, min=0.0), node("nn.Slice", "k", "s"), node("Sum", "s x", "d"),
        )  # fmt: skip
        assert spelled(propagate_zeros(graph(ZERO, *nodes, outputs="d"))) == ["0 = Constant()", "d = Sum(x)"]

    @pytest.mark.parametrize(("low", "high", "left"), [(-1.0, 1.0, 1), (-1.0, 0.0, 1), (0.0, 1.0, 1), (-2.0, -1.0, 3)])
    def test_a_range_that_has_zero_keeps_it(self, low, high, left):
        clipped = node("nn.Clip", "z", "a", max=high, min=low)
        simplified = propagate_zeros(
            graph(ZERO, node("Mul", "0 x", "z"), clipped, node("Sum", "a x", "b"), outputs="b")
        )
        assert len(simplified.nodes) == 1 + left

    def test_other_operators_read_a_zero(self):
        for other in (node("Concat", "z x", "a", axis=1), node("nn.Clip", "z", "a", max=6.0, min=1.0)):
            simplified = propagate_zeros(graph(ZERO, node("Mul", "0 x", "z"), other, outputs="a"))
            assert simplified.nodes[-1].op_type == other.op_type

    def test_a_convolution_of_zero_stays(self):
        layers = (node("Mul", "0 x", "z"), conv("z", "a", "w"), node("Sum", "a x", "b"))
        simplified = propagate_zeros(graph(ZERO, *layers, outputs="b"))
        assert [n.op_type for n in simplified.nodes] == ["Constant", "nn.Zeros", "nn.Conv", "Sum"]

    def test_a_bias_makes_a_constant_of_its_own_zero(self):
        layers = [node("nn.ConvBias", "z", y, weights=y, weight_shape=(2, 2, 1, 1)) for y in "ab"]
        zeroed = graph(ZERO, node("Mul", "x 0", "z"), *layers, node("Sum", "a b", "c"), outputs="c")
        simplified = propagate_zeros(zeroed)
        constants = [n for n in simplified.nodes if n.op_type == "nn.Zeros"]
        assert [n.attributes for n in constants] == [(("shape", (1, 2, 4, 4)),)] * 2
        assert len({n.outputs for n in constants}) == 2
        assert run(simplified, draw_weights(zeroed))[0].any()

    def test_a_zero_output_is_a_constant(self):
        zeroed = graph(ZERO, node("Mul", "x 0", "z"), outputs="z z")
        outputs = run(propagate_zeros(zeroed), {})
        assert [output.shape for output in outputs] == [(1, 2, 4, 4)] * 2
        assert not any(output.any() for output in outputs)

    def test_other_constants_are_no_zeros(self):
        one = node("Constant", "", "1", value_float=1.0)
        scaled = graph(one, node("Mul", "x 1", "a"), node("Mul", "a x", "b"), outputs="b")
        assert propagate_zeros(scaled) is scaled

    def test_a_sum_that_reads_a_zero_scalar_stays(self):
        scalar = graph(ZERO, node("Sum", "x 0", "a"), outputs="a")
        assert spelled(propagate_zeros(scalar)) == spelled(scalar)


class TestDropIdentities:
    @pytest.mark.parametrize("op_type", ["Identity", "Dropout", "Sum"])
    def test_readers_and_outputs_skip_it(self, op_type):
        nodes = (node(op_type, "x", "a"), node(op_type, "a", "b"), node("Relu", "b", "c"))
        dropped = drop_identities(graph(*nodes, outputs="c b"))
        assert spelled(dropped) == ["c = Relu(x)"]
        assert dropped.outputs == ("c", "x")

    @pytest.mark.parametrize(("kernel", "attributes", "left"), [(1, {}, 1), (2, {}, 2), (1, {"strides": (2, 2)}, 2)])
    def test_a_pool_of_one_pixel_hands_it_on(self, kernel, attributes, left):
        for op_type in ("AveragePool", "MaxPool"):
            pool = node(op_type, "x", "a", kernel_shape=(kernel, kernel), **attributes)
            assert len(drop_identities(graph(pool, node("Relu", "a", "b"), outputs="b")).nodes) == left

    def test_a_sum_of_twice_the_same_is_none(self):
        doubled = graph(node("Sum", "x x", "a"), outputs="a")
        assert spelled(drop_identities(doubled)) == spelled(doubled)


class TestMergeEqualValues:
    def test_one_operator_on_the_same_values_is_one_node(self):
        nodes = (node("Relu", "x", "a"), node("Relu", "x", "b"), node("Relu", "a", "c"), node("Relu", "b", "d"))
        merged = merge_equal_values(graph(*nodes, outputs="c d"))
        assert spelled(merged) == ["a = Relu(x)", "c = Relu(a)"]
        assert merged.outputs == ("c", "c")

    def test_attributes_tell_apart(self):
        pools = [node("AveragePool", "x", y, kernel_shape=(size, size)) for y, size in (("a", 1), ("b", 2))]
        assert len(merge_equal_values(graph(*pools, outputs="a b")).nodes) == 2

    @pytest.mark.parametrize(("weights", "left"), [("u v", 2), ("u u", 1)])
    def test_layers_are_equal_if_their_weights_are(self, weights, left):
        layers = [conv("x", y, w) for y, w in zip("ab", weights.split(), strict=True)]
        assert len(merge_equal_values(graph(*layers, outputs="a b")).nodes) == left

    def test_sums_are_equal_if_their_terms_are(self):
        relu, pool = node("Relu", "x", "a"), node("GlobalAveragePool", "x", "b")
        sums = [node("Sum", "a b", "c"), node("Sum", "c x", "d"), node("Sum", "x b", "e"), node("Sum", "e a", "f")]
        merged = merge_equal_values(graph(relu, pool, *sums, outputs="d f"))
        assert merged.outputs == ("d", "d")

    @pytest.mark.parametrize(("op_type", "left"), [("Mul", 1), ("Max", 1), ("Sub", 2)])
    def test_operands_of_commutative_operators_have_no_order(self, op_type, left):
        products = [node(op_type, "a x", "b"), node(op_type, "x a", "c")]
        merged = merge_equal_values(graph(node("Relu", "x", "a"), *products, outputs="b c"))
        assert len(merged.nodes) == 1 + left

    def test_constants_stay_apart(self):
        constants = [node("nn.Zeros", "", y, shape=(1, 2, 4, 4)) for y in "ab"]
        assert len(merge_equal_values(graph(*constants, outputs="a b")).nodes) == 2


class TestFlattenSums:
    def test_nested_sums_become_one(self):
        terms = [node("Relu", "x", "a"), node("Relu", "a", "b")]
        sums = [node("Sum", "x a", "c"), node("Sum", "c b", "d")]
        assert spelled(flatten_sums(graph(*terms, *sums, outputs="d")))[-1] == "d = Sum(a b x)"

    def test_a_value_added_to_itself_is_scaled(self):
        flat = flatten_sums(graph(node("Sum", "x x", "a"), node("Sum", "a a x", "b"), outputs="b"))
        assert spelled(flat) == ["b = nn.Scale(x)"]
        assert flat.nodes[0].attribute("factor") == 5.0

    def test_a_sum_reads_another_that_it_contains(self):
        terms = [node("Relu", "x", "a"), node("Relu", "a", "b")]
        sums = [node("Sum", "x a", "c"), node("Relu", "c", "d"), node("Sum", "x a b", "e")]
        flat = flatten_sums(graph(*terms, *sums, outputs="d e"))
        assert "c = Sum(a x)" in spelled(flat)
        assert "e = Sum(b c)" in spelled(flat)

    def test_what_two_sums_share_becomes_a_sum_of_its_own(self):
        terms = [node("Relu", "x", "a"), *[conv("x", y, y) for y in "bc"]]
        flat = flatten_sums(graph(*terms, node("Sum", "x a b", "d"), node("Sum", "c a x", "e"), outputs="d e"))
        assert [len(n.inputs) for n in flat.nodes if n.op_type == "Sum"] == [2, 2, 2]

    def test_a_shared_part_that_is_a_sum_already_is_not_written_twice(self):
        """``d`` holds ``c`` three times, so ``c`` goes first, and what is left of ``d`` and ``e`` holds ``b``."""
        terms = [node("Relu", "x", "a"), conv("x", "k", "k"), conv("a", "l", "l"), conv("a", "m", "m")]
        sums = [node("Sum", "x a", "w"), node("Sum", "w k", "z"), node("Sum", "w w w k", "d")]
        sums += [node("Sum", "w w w k l", "e"), node("Sum", "w k m", "f")]
        readers = [node("Relu", y, f"{y}r") for y in "wzdef"]
        flat = flatten_sums(graph(*terms, *sums, *readers, outputs="wr zr dr er fr"))
        assert all(n.attribute("factor") != 1.0 for n in flat.nodes)


class TestRemoveDeadNodes:
    def test_only_what_outputs_need_remains(self):
        nodes = [node("Relu", "x", "a"), node("Relu", "a", "dead"), conv("dead", "deader", "w"), conv("a", "b", "v")]
        assert spelled(remove_dead_nodes(graph(*nodes, outputs="b"))) == ["a = Relu(x)", "b = nn.Conv(a)"]


def test_passes_leave_the_graph_they_are_given_alone():
    nodes = (ZERO, node("Mul", "x 0", "z"), conv("z", "a", "w"), batch_norm("a", "b", "n"), node("Sum", "b x", "c"))
    given_graph = graph(*nodes, outputs="c")
    shapes = dict(given_graph.shapes)
    simplify(given_graph)
    assert given_graph.nodes == nodes
    assert given_graph.shapes == shapes


@pytest.mark.parametrize("seed", range(20))
def test_nasbench201_networks_keep_their_function(seed):
    space = NASBench201(dataset="imagenet16-120")
    faithful = to_graph(space, space.sample(rng(seed)))
    weights = draw_weights(faithful, seed)
    assert relative_error(run(to_canonical_graph(faithful), weights), run(faithful, weights)) < 1e-4
