"""What every pass promises, on random graphs: a few by default, many when slow tests run."""

from hypothesis import strategies as st

from converters.convert import graph_to_onnx_text, to_canonical_graph
from converters.graph import Graph
from converters.passes.canonical import canonicalise
from converters.passes.outline import outline
from converters.passes.simplify import (
    drop_identities,
    fold_batch_norms,
    merge_equal_values,
    propagate_zeros,
    remove_dead_nodes,
    simplify,
)
from converters.passes.sums import flatten_sums
from converters.text import parse, print_model, to_model, write
from tests.converters.graphs import KINDS, nest_sums, random_graphs, repetitive_graphs, scramble
from tests.converters.inlined import inlined, spelled
from tests.converters.numerics import draw_weights, relative_error, run
from tests.converters.promises import kept

PASSES = (
    fold_batch_norms,
    propagate_zeros,
    drop_identities,
    merge_equal_values,
    remove_dead_nodes,
    flatten_sums,
    canonicalise,
)
EXPECTED_BEFORE = {
    flatten_sums: (drop_identities, merge_equal_values, remove_dead_nodes),
    canonicalise: (remove_dead_nodes,),
}
SEEDS = st.integers(0, 9)


def prepared(faithful: Graph, rewrite) -> Graph:
    """What a pass may be given."""
    for earlier in EXPECTED_BEFORE.get(rewrite, ()):
        faithful = earlier(faithful)
    return faithful


def each_pass_keeps_the_numbers(faithful, rewrite, seed):
    weights = draw_weights(faithful, seed)
    rewritten = rewrite(prepared(faithful, rewrite))
    assert relative_error(run(rewritten, weights), run(faithful, weights)) < 1e-4


def passes_in_a_row_keep_the_numbers(faithful, seed):
    weights = draw_weights(faithful, seed)
    expected = run(faithful, weights)
    for rewrite in PASSES:
        faithful = rewrite(faithful)
        assert relative_error(run(faithful, weights), expected) < 1e-4, rewrite.__name__


def each_pass_leaves_nothing_to_itself(faithful, rewrite):
    once = rewrite(prepared(faithful, rewrite))
    twice = rewrite(once)
    if rewrite is flatten_sums:  # of which the order is not promised
        once, twice = canonicalise(once), canonicalise(twice)
    assert write(twice) == write(once)


def simplify_leaves_nothing_to_itself(faithful):
    simplified = simplify(faithful)
    assert remove_dead_nodes(simplified) == simplified
    assert write(canonicalise(simplify(simplified))) == write(canonicalise(simplified))


def values_that_remain_have_shapes(faithful):
    simplified = simplify(faithful)
    assert {x for node in simplified.nodes for x in node.outputs} <= simplified.shapes.keys()


def spelling_does_not_matter(faithful, random):
    assert graph_to_onnx_text(scramble(faithful, random)) == graph_to_onnx_text(faithful)


def nesting_of_sums_does_not_matter(faithful, random):
    assert graph_to_onnx_text(nest_sums(faithful, random)) == graph_to_onnx_text(faithful)


def inlining_undoes_the_outlining(faithful):
    flat = to_canonical_graph(faithful)
    assert spelled(inlined(write(outline(flat)))) == spelled(parse(write(flat)))


def text_is_valid_and_printed_as_it_stands(faithful):
    onnx_text = graph_to_onnx_text(faithful)
    assert print_model(parse(onnx_text)) == onnx_text
    to_model(onnx_text)


GRAPHS, RANDOM = random_graphs(max_nodes=16) | repetitive_graphs(), st.randoms(use_true_random=False)
WITHOUT_BATCH_NORMS = random_graphs(max_nodes=16, kinds=[kind for kind in KINDS if "batch_norm" not in kind])
PROPERTIES = {
    each_pass_keeps_the_numbers: (50, (GRAPHS, st.sampled_from(PASSES), SEEDS)),
    passes_in_a_row_keep_the_numbers: (20, (GRAPHS, SEEDS)),
    each_pass_leaves_nothing_to_itself: (200, (GRAPHS, st.sampled_from(PASSES))),
    simplify_leaves_nothing_to_itself: (50, (WITHOUT_BATCH_NORMS,)),  # see the note there
    values_that_remain_have_shapes: (50, (GRAPHS,)),
    spelling_does_not_matter: (100, (GRAPHS, RANDOM)),
    nesting_of_sums_does_not_matter: (50, (GRAPHS, RANDOM)),
    inlining_undoes_the_outlining: (100, (repetitive_graphs(),)),
    text_is_valid_and_printed_as_it_stands: (50, (repetitive_graphs(),)),
}


test_promises = kept(PROPERTIES)
