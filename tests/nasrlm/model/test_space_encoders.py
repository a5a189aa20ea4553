"""A space may have an encoder of its own: learned beside the common model, kept in 8 bits, asked for its networks."""

import json
import pickle
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.card_steps import refine_step
from nasrlm.checkpoints.checkpoint import Checkpoint, round_weights
from nasrlm.checkpoints.folder import SPACES_FILE, CheckpointError
from nasrlm.examples import Examples
from nasrlm.files import write_table
from nasrlm.model.cost_sum import CostSum
from nasrlm.model.row_sum import RowSum
from nasrlm.model.space_encoders import changes_of, with_changes
from nasrlm.model_card import with_step
from nasrlm.predictor import Predictor
from nasrlm.text.row_counts import WHOLE
from nasrlm.training.run import TrainingRun
from nasrlm.training.train import train
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.runs import Killed, config, killed_in
from tests.nasrlm.scenes import OBJECTIVES, architecture_table, layer_examples, tiny_model

TEXTS = ["Conv3\nPool\n", "Pool\n", "Conv3\n", "Skip\n"]
UP = "layers.0.mlp.up.weight"


@pytest.fixture(scope="module")
def changed(checkpoint: Checkpoint) -> Checkpoint:
    """Space "own" reads with the encoder of another random model."""
    other = tiny_model(1, vocabulary_size=checkpoint.tokenizer.vocabulary_size)
    return replace(checkpoint, encoders={"own": changes_of(other.encoder, checkpoint.model.encoder)})


def two_spaces() -> Examples:
    rows = layer_examples()
    spaces = np.where(np.arange(len(rows)) % 3 == 0, "own", "other")
    return Examples(rows.texts, rows.objectives, rows.labels, rows.splits, spaces)


def test_changes_make_one_encoder_of_another_to_a_sixteenth_of_each_change() -> None:
    common, own = tiny_model(0), tiny_model(1)
    made = with_changes(common, changes_of(own.encoder, common.encoder))
    for name, weights in own.encoder.state_dict().items():
        before, after = common.encoder.state_dict()[name], made.encoder.state_dict()[name]
        change = weights - before
        assert ((after - weights).abs() <= change.abs() / 16 + change.abs().max() * 1e-5).all()
    assert all(map(torch.equal, made.decoder.state_dict().values(), common.decoder.state_dict().values()))


def test_a_space_is_asked_of_the_whole_checkpoint_whatever_was_asked_before(changed: Checkpoint) -> None:
    directly = Predictor(changed).of_space("own").predict(TEXTS).values
    assert not np.allclose(Predictor(changed).predict(TEXTS).values, directly)
    np.testing.assert_array_equal(Predictor(changed).of_space("other").of_space("own").predict(TEXTS).values, directly)


def test_encoders_are_pickled(changed: Checkpoint) -> None:
    predictor = Predictor(changed)
    directly = predictor.of_space("own").predict(TEXTS).values
    for made in (predictor, predictor.of_space("own")):
        copied = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(copied.predict(TEXTS).values, made.predict(TEXTS).values)
        np.testing.assert_array_equal(copied.of_space("own").predict(TEXTS).values, directly)
        assert copied.checkpoint.sha256 == made.checkpoint.sha256


def test_what_is_the_same_is_not_kept() -> None:
    common, own = tiny_model(0), tiny_model(0)
    with torch.no_grad():
        own.encoder.state_dict()[UP][0, 0] += 1.0
    changes = changes_of(own.encoder, common.encoder)
    assert set(changes) == {UP}
    assert changes[UP].numbers.element_size() == 1


@pytest.mark.parametrize("engine", ["torch", "onnxruntime"])
def test_networks_of_the_space_are_read_by_its_encoder(changed: Checkpoint, engine: Any) -> None:
    predictor = Predictor(changed, engine, memory_bytes=2**20)
    common, own, other = (
        x.predict(TEXTS).values for x in (predictor, predictor.of_space("own"), predictor.of_space("b"))
    )
    by_hand = Predictor(changed.of_space("own")).predict(TEXTS).values
    np.testing.assert_allclose(own, by_hand, rtol=1e-4)
    assert not np.allclose(own, common, rtol=0.01)
    np.testing.assert_array_equal(other, common)
    assert predictor.of_space("own") is predictor.of_space("own").of_space("own")  # one engine for all questions


def test_a_readout_says_the_same_whichever_encoder_reads(changed: Checkpoint) -> None:
    pool = make_pool(changed, TEXTS, space="own")
    np.testing.assert_array_equal(pool.summaries, Predictor(changed, "auto").summaries(TEXTS))
    adapted = Predictor(adapt(changed, pool, "latency_ms@new", np.array([1.0, 2.0, 3.0, np.nan])))
    common, own = (x.predict(TEXTS, ["latency_ms@new", OBJECTIVES[0]]) for x in (adapted, adapted.of_space("own")))
    np.testing.assert_allclose(own.values[:, 0], common.values[:, 0], rtol=1e-9)
    assert not np.allclose(own.values[:, 1], common.values[:, 1], rtol=0.01)


def test_what_is_read_off_alone_is_not_read_by_a_spaces_own_encoder(
    changed: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = make_pool(changed, TEXTS, space="own")
    own = Predictor(adapt(changed, pool, "latency_ms@new", np.array([1.0, 2.0, 3.0, np.nan]))).of_space("own")
    both = own.predict(TEXTS, ["latency_ms@new", OBJECTIVES[0]]).values[:, 0]
    monkeypatch.setattr(own, "_reader", None)
    np.testing.assert_allclose(own.predict(TEXTS, ["latency_ms@new"]).values[:, 0], both, rtol=1e-9)


def test_a_checkpoint_comes_back_with_its_encoders(changed: Checkpoint, checkpoint: Checkpoint, tmp_path: Path) -> None:
    changed.save_pretrained(tmp_path / "saved")
    loaded = Checkpoint.from_pretrained(tmp_path / "saved")
    assert loaded.sha256 == changed.sha256 != checkpoint.sha256
    asked = (Predictor(x).of_space("own").predict(TEXTS).values for x in (loaded, changed))
    np.testing.assert_array_equal(*asked)
    checkpoint.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / SPACES_FILE).exists()


def edit(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def breaks(path: Path) -> None:
        stored = load_file(path)
        change(stored)
        save_file(stored, path)

    return breaks


@pytest.mark.parametrize(
    ("breaks", "message"),
    [
        (Path.unlink, "expected a safetensors file"),
        (lambda path: path.write_bytes(path.read_bytes()[:50]), "expected a safetensors file"),
        (edit(lambda x: x.update({"own/head": torch.ones(2)})), r"weights, got own/head of \(2,\)"),
        (edit(lambda x: x.update({f"own/{UP}": torch.ones(2)})), rf"weights, got own/{UP} of \(2,\)"),
        (edit(lambda x: x.pop(f"own/{UP}.unit")), f"weights, got own/{UP} of"),
        (
            edit(lambda x: x[f"own/{UP}.unit"].fill_(float("nan"))),
            "got NaN or larger ones in tensor own/",
        ),
        (edit(lambda x: x.update({k.replace("own/", "b/"): x.pop(k) for k in list(x)})), "encoders of own, got b"),
    ],
)
def test_broken_encoders_are_named(
    changed: Checkpoint, breaks: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    changed.save_pretrained(tmp_path / "saved")
    breaks(tmp_path / "saved" / SPACES_FILE)
    with pytest.raises(CheckpointError, match=rf"{SPACES_FILE}: .*{message}"):
        Checkpoint.from_pretrained(tmp_path / "saved")


def test_a_space_learns_an_encoder_and_nothing_else_changes(checkpoint: Checkpoint, tmp_path: Path) -> None:
    checkpoint.save_pretrained(tmp_path / "initial")
    chosen = config(tmp_path / "run", initial_checkpoint=tmp_path / "initial", encoder_steps={"own": 30})
    result = train(chosen, two_spaces(), progress=False)
    assert (result.steps, result.checkpoint.card["encoders"]["own"]["steps"]) == (30, 30)
    assert all(map(torch.equal, result.checkpoint.model.state_dict().values(), checkpoint.model.state_dict().values()))
    assert not any(name.startswith("embedding") for name in result.checkpoint.encoders["own"])
    loaded = Checkpoint.from_pretrained(tmp_path / "run" / "checkpoint")
    valid = dict(two_spaces().split("valid").by_space())["own"]
    before, after = (Predictor(x.of_space("own")) for x in (checkpoint, loaded))
    score_before, score_after = (
        x.log_probabilities(valid.texts, OBJECTIVES, valid.labels).mean() for x in (before, after)
    )
    assert score_after > score_before
    assert {space: set(x) for space, x in loaded.calibration_by_space.items()} == {"own": set(OBJECTIVES)}


def test_what_a_checkpoint_of_one_space_knows_stays_known(checkpoint: Checkpoint, tmp_path: Path) -> None:
    of_one = replace(checkpoint, model=deepcopy(checkpoint.model), card={"test": {"other": {}}}, weight_bits=16)
    round_weights(of_one.model)
    of_one.save_pretrained(tmp_path / "initial")
    changes = {"initial_checkpoint": tmp_path / "initial", "objectives": OBJECTIVES[:1], "weight_bits": 16}
    result = train(config(tmp_path / "run", encoder_steps={"own": 2}, **changes), two_spaces()).checkpoint
    assert (result.spaces, result.objectives_of("other")) == (("other", "own"), of_one.objectives)
    assert not any(name.startswith("embedding") for name in result.encoders["own"])  # which nobody has rounded
    assert "out" not in result.card["training"]


def test_a_stopped_run_of_encoders_goes_on(
    checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = {"own": 8, "other": 12}
    chosen = config(tmp_path / "a", initial_checkpoint=checkpoint_folder, encoder_steps=steps, save_every_seconds=0)
    whole = train(chosen, two_spaces(), progress=False)
    stopped = chosen.model_copy(update={"out": tmp_path / "b"})
    with monkeypatch.context() as patched:
        patched.setattr(TrainingRun, "_train_step", killed_in("_train_step", 10))
        with pytest.raises(Killed):
            train(stopped, two_spaces(), progress=False)
    assert train(stopped, two_spaces(), progress=False).checkpoint.sha256 == whole.checkpoint.sha256


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_steps": {"moon": 5}}, "encoder_steps: expected names among other, own, got moon"),
        ({"encoder_steps": {"own": 5}, "objectives": ("a_b@c",)}, "objectives: expected names among .*, got a_b@c"),
        ({"encoder_steps": {"own": 5}, "monitor": ("a_b@c",)}, "monitor: expected names among .*, got a_b@c"),
        (
            {"encoder_steps": {"own": 5}, "objective_weights": {"a_b@c": 2.0}},
            "objective_weights: expected .*, got a_b@c",
        ),
        ({"encoder_steps": {"own": 0}}, "encoder_steps.own"),
        ({"encoder_steps": {"own": 5}, "space_weights": {"own": 2.0}}, "no extend_tokenizer or space_weights"),
        ({"encoder_steps": {"own": 5}, "weight_bits": 16}, "weight_bits: expected 32, as in .*tiny, .*, got 16"),
        (
            {"encoder_steps": {"own": 5}, "initial_checkpoint": None},
            "expected an initial_checkpoint, and no extend_tokenizer",
        ),
    ],
)
def test_what_cannot_learn_an_encoder_is_named(
    changes: dict[str, Any], message: str, checkpoint_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        train(config(tmp_path, **{"initial_checkpoint": checkpoint_folder} | changes), two_spaces(), progress=False)


def test_a_text_too_long_is_told_by_its_row_among_all(checkpoint_folder: Path, tmp_path: Path) -> None:
    rows = two_spaces()
    longer = replace(rows, texts=["Pool\n" * 600 if row == 9 else text for row, text in enumerate(rows.texts)])
    chosen = config(tmp_path, initial_checkpoint=checkpoint_folder, encoder_steps={"own": 5})
    with pytest.raises(ValueError, match=r"^text: expected 1 to 512 tokens, got \d+ in row 9 "):
        train(chosen, longer, progress=False)


def test_labels_that_the_checkpoint_does_not_know_are_named(checkpoint_folder: Path, tmp_path: Path) -> None:
    rows = two_spaces()
    new = replace(rows, objectives=(OBJECTIVES[0], "energy_mj@new"))
    chosen = config(tmp_path, initial_checkpoint=checkpoint_folder, encoder_steps={"own": 5})
    with pytest.raises(ValueError, match=r"expected objectives of .*tiny, got energy_mj@new. Leave them out"):
        train(chosen, new, progress=False)


def test_objectives_without_labels_to_learn_are_refused_if_named_and_else_left_out(
    checkpoint_folder: Path, tmp_path: Path
) -> None:
    rows = two_spaces()
    only_valid = np.where(rows.splits == "train", np.nan, rows.labels[:, 1])
    rows = replace(rows, labels=np.column_stack([rows.labels[:, 0], only_valid]))
    changes: dict[str, Any] = {"initial_checkpoint": checkpoint_folder, "encoder_steps": {"own": 2}}
    with pytest.raises(ValueError, match=f"objectives: expected labels in rows .*, got none of {OBJECTIVES[1]}"):
        train(config(tmp_path, objectives=OBJECTIVES, **changes), rows)
    new = replace(rows, objectives=(OBJECTIVES[0], "energy_mj@new"))
    with pytest.warns(
        UserWarning, match="train: expected train rows with labels of energy_mj@new, got none: they are not learned"
    ):
        assert train(config(tmp_path, **changes), new).steps == 2


def write_recipe(folder: Path, **changes: Any) -> Path:
    """A recipe of a short run, and its table."""
    write_table(architecture_table(40).drop(columns="latency_ms@unheard"), folder / "table.parquet")
    recipe = {"table": str(folder / "table.parquet"), "out": str(folder / "run"), "batch_size": 8}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe | changes))
    return folder / "recipe.yaml"


def test_the_command_line_trains_encoders_and_says_so(
    checkpoint_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    initial = str(checkpoint_folder)
    recipe = write_recipe(tmp_path, initial_checkpoint=initial, encoder_steps={"nasbench201": 3})
    assert nasrlm("train", "--config", recipe).status == 0
    folder = tmp_path / "run" / "checkpoint"
    assert "Networks of nasbench201 have encoders of their own" in (folder / "README.md").read_text(encoding="utf-8")
    told = json.loads(nasrlm("info", "--checkpoint", folder, "--json").stdout)["checkpoint"]
    assert (told["own_encoders"], told["commands"][-1]["steps"]) == (["nasbench201"], 3)
    recipe = write_recipe(tmp_path, initial_checkpoint=initial, encoder_steps={"moon": 3})
    refused = nasrlm("train", "--config", recipe, "--out", tmp_path / "other")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
    assert "encoder_steps: expected names among nasbench201, got moon" in refused.stderr
    assert not (tmp_path / "other" / "checkpoint").exists()


def test_what_was_refined_is_trained_further_and_its_card_says_so(
    checkpoint: Checkpoint, tmp_path: Path, nasrlm: CommandLine
) -> None:
    summed = {"nasbench201": [OBJECTIVES[1]]}
    with_step(checkpoint, refine_step(summed, [Path("rows.parquet")])).save_pretrained(tmp_path / "refined")
    recipe = write_recipe(tmp_path, initial_checkpoint=str(tmp_path / "refined"), max_steps=2)
    assert nasrlm("train", "--config", recipe).status == 0
    card = (tmp_path / "run" / "checkpoint" / "README.md").read_text(encoding="utf-8")
    assert "- `nasrlm refine` made sums of costs, from the labels of rows.parquet.\n" in card
    assert ": 2 steps in " in card


def test_a_space_named_by_a_path_trains_within_the_runs_folder(checkpoint_folder: Path, tmp_path: Path) -> None:
    rows, name = two_spaces(), str(tmp_path / "mine.py:Own")
    named = replace(rows, spaces=np.where(rows.spaces == "own", name, rows.spaces))
    chosen = config(tmp_path / "run", initial_checkpoint=checkpoint_folder, encoder_steps={name: 2})
    train(chosen, named, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_space_known_by_another_path_gets_the_encoder_and_loses_its_sums(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    own = CostSum(RowSum(np.array([WHOLE]), np.ones((1, 2))), deviation=0.1)
    sums = {space: {OBJECTIVES[1]: own} for space in ("there/mine.py:Own", "other")}
    known = {space: dict.fromkeys(OBJECTIVES, ()) for space in sums}
    replace(checkpoint, sums_by_space=sums, calibration_by_space=known).save_pretrained(tmp_path / "summed")
    rows = two_spaces()
    named = replace(rows, spaces=np.where(rows.spaces == "own", "mine.py:Own", rows.spaces))  # by another path
    chosen = config(tmp_path / "run", initial_checkpoint=tmp_path / "summed", encoder_steps={"mine.py:Own": 2})
    trained = train(chosen, named).checkpoint
    assert list(trained.sums_by_space) == ["other"]
    assert (list(trained.encoders), trained.spaces) == (["there/mine.py:Own"], tuple(sums))
