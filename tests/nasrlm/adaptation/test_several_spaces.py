"""An objective that is learned in several spaces, each from its own labels."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import Pool, make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.model.space_encoders import Change
from nasrlm.predictor import Predictor
from tests.nasrlm.scenes import OBJECTIVES, drawn_texts, network_checkpoint

NEW = "latency_ms@unheard"


def labelled_pool(checkpoint: Checkpoint, name: str, costs: tuple[float, float]) -> tuple[Pool, np.ndarray]:
    """Texts of a space, of which 12 have labels between ``costs``."""
    pool = make_pool(checkpoint, drawn_texts(name, 40, np.random.default_rng(3)))
    return pool, np.where(np.arange(len(pool.texts)) < 12, np.linspace(*costs, len(pool.texts)), np.nan)


@pytest.mark.parametrize("name", [NEW, OBJECTIVES[1]])  # a known objective's own predictions are features
def test_each_of_two_spaces_is_predicted_as_if_it_were_the_only_one(name: str) -> None:
    checkpoint = network_checkpoint()
    cells, blocks = (
        labelled_pool(checkpoint, "nasbench201", (1, 9)),
        labelled_pool(checkpoint, "nasbench_macro", (90, 20)),
    )
    of_cells = adapt(checkpoint, cells[0], name, cells[1])
    of_blocks = adapt(checkpoint, blocks[0], name, blocks[1])
    both = adapt(of_cells, blocks[0], name, blocks[1], beside=True)
    texts = [text for pair in zip(cells[0].texts, blocks[0].texts, strict=False) for text in pair]  # one after another
    names, values = [OBJECTIVES[0], name], np.full((len(texts), 2), 9.0)
    questions: list[Callable[[Predictor], np.ndarray]] = [
        lambda predictor: predictor.predict(texts, names).values,
        lambda predictor: predictor.joint_samples(texts, names, 3),
        lambda predictor: predictor.log_probabilities(texts, names, values),
        lambda predictor: predictor.cumulative_probabilities(texts, names, values),
    ]
    for ask in questions:
        found = ask(Predictor(both))
        for alone, start in ((of_cells, 0), (of_blocks, 1)):
            np.testing.assert_allclose(found[start::2], ask(Predictor(alone))[start::2], rtol=1e-6)
    forgotten = adapt(of_cells, blocks[0], name, blocks[1])
    assert np.median(Predictor(forgotten).predict(cells[0].texts, [name]).median) > 15


def test_spaces_side_by_side_survive_a_folder_and_another_objective(tmp_path: Path) -> None:
    both = network_checkpoint()
    pools = [
        labelled_pool(both, name, costs) for name, costs in (("nasbench201", (1, 9)), ("nasbench_macro", (90, 20)))
    ]
    for number, (pool, labels) in enumerate(pools):
        both = adapt(both, pool, NEW, labels, beside=number > 0)
    adapt(both, pools[0][0], "energy_mj@unheard", pools[0][1]).save_pretrained(tmp_path)
    loaded = Checkpoint.from_pretrained(tmp_path)
    assert loaded.objectives == (*both.objectives, "energy_mj@unheard")
    for pool, _ in pools:
        found, expected = (Predictor(x).predict(pool.texts, [NEW]).values for x in (loaded, both))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(Predictor(loaded).predict(pools[1][0].texts, quantiles=(0.1, 0.9)).objectives) == 4


def test_of_two_pools_that_no_text_can_tell_apart_the_newer_one_counts(checkpoint: Checkpoint) -> None:
    pool, labels = labelled_pool(checkpoint, "nasbench201", (1, 9))
    once = adapt(checkpoint, pool, NEW, labels)
    twice = adapt(once, pool, NEW, 100 * labels, beside=True)
    assert twice.model.config.num_readouts == 1
    found, before = (Predictor(x).predict(pool.texts, [NEW]).median for x in (twice, once))
    np.testing.assert_allclose(found, 100 * before, rtol=1e-3)


def test_texts_that_an_earlier_pool_of_their_space_still_predicts_are_told(checkpoint: Checkpoint) -> None:
    pool, labels = labelled_pool(checkpoint, "nasbench201", (1, 9))
    once = adapt(checkpoint, pool.pool_of(np.arange(20)), NEW, labels[:20])
    with pytest.warns(UserWarning, match=r"\d+ % of the texts are more like .* before. Give make_pool and predictions"):
        adapt(once, pool, NEW, labels, beside=True)


def test_of_spaces_that_share_networks_the_named_one_counts(tmp_path: Path) -> None:
    checkpoint = network_checkpoint()
    pool, labels = labelled_pool(checkpoint, "nasbench201", (1, 9))
    of_a, of_b = replace(pool, space="a"), replace(pool, space="b")
    once = adapt(checkpoint, of_a, NEW, labels)
    with pytest.warns(UserWarning, match="before. Name their space in predictions too, or these are predicted from"):
        both = adapt(once, of_b, NEW, 100 * labels, beside=True)
    both.save_pretrained(tmp_path)
    loaded = Checkpoint.from_pretrained(tmp_path)
    assert loaded.readout_spaces == ("a", "b")
    assert loaded.sha256 == both.sha256
    assert replace(loaded, readout_spaces=("b", "a")).sha256 != both.sha256
    weights = checkpoint.model.encoder.state_dict()
    changes = {name: Change.of(torch.ones_like(x)) for name, x in weights.items() if "norm" in name}
    predictor = Predictor(replace(loaded, encoders={"a": changes}))  # of the two spaces, one has an encoder of its own
    texts, spaces = [*pool.texts, *pool.texts], ["b"] * len(pool.texts) + ["a"] * len(pool.texts)
    expected = Predictor(once).predict(pool.texts, [NEW]).median
    for names in ([NEW], [OBJECTIVES[0], NEW]):  # all are read off, or some
        found = predictor.predict(texts, names, spaces=spaces).median[:, -1:]
        np.testing.assert_allclose(found, np.concatenate([100 * expected, expected]), rtol=1e-3)
    of_others = predictor.of_space("c").predict(pool.texts, [NEW]).median
    np.testing.assert_array_equal(of_others, predictor.predict(pool.texts, [NEW]).median)


def test_a_space_that_is_learned_again_is_forgotten_and_others_are_kept(checkpoint: Checkpoint) -> None:
    pool, labels = labelled_pool(checkpoint, "nasbench201", (1, 9))
    learned = checkpoint
    for space, factor in (("~/b.py:B", 100), ("a", 1), ("~/b.py:B", 10)):
        with warnings.catch_warnings(action="ignore"):
            learned = adapt(learned, replace(pool, space=space), NEW, factor * labels, beside=True)
    assert learned.readout_spaces == ("a", "~/b.py:B")
    learned = adapt(learned, replace(pool, space="~/b.py:B"), "energy_mj@unheard", labels)
    a, b = (Predictor(learned).of_space(space).predict(pool.texts, [NEW]).median for space in ("a", "other/b.py:B"))
    np.testing.assert_allclose(b, 10 * a, rtol=1e-3)


def test_beside_is_yes_or_no(checkpoint: Checkpoint) -> None:
    pool, labels = labelled_pool(checkpoint, "nasbench201", (1, 9))
    with pytest.raises(ValueError, match="adapt: beside: expected True or False, got 'no'"):
        adapt(checkpoint, pool, NEW, labels, beside="no")  # type: ignore[arg-type]
