"""A checkpoint of several spaces answers for each by what it has learned of it."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from nasrlm.adaptation.adapt import adapt
from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint
from nasrlm.cli.guesses import guesses
from nasrlm.evaluation import evaluate
from nasrlm.examples import Examples
from nasrlm.files import write_table
from nasrlm.named_spaces import checked_space
from nasrlm.predictor import Predictor
from nasrlm.training.config import TrainConfig
from nasrlm.training.train import train
from spaces import get_space
from spaces.fbnet import FBNet
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.scenes import OBJECTIVES, SIZES, architecture_table, layer_examples

ACCURACY, LATENCY = OBJECTIVES
LOW, HIGH = ([round(share * level / 100, 4) for level in range(1, 100)] for share in (0.5, 1.0))
TEXTS = ["Conv3\nPool\n", "Pool\n"]


@pytest.fixture(scope="module")
def several(checkpoint: Checkpoint) -> Checkpoint:
    """NAS-Bench-201 has both objectives, the other space latencies alone."""
    by_space = {"nasbench201": {ACCURACY: HIGH, LATENCY: LOW}, "other": {LATENCY: []}}
    return replace(checkpoint, calibration={ACCURACY: HIGH, LATENCY: HIGH}, calibration_by_space=by_space)


@pytest.fixture(scope="module")
def several_folder(several: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "several"
    several.save_pretrained(folder)
    return folder


def test_a_space_has_its_own_levels_and_those_of_all_where_it_lacks_them(several: Checkpoint) -> None:
    assert several.of_space("nasbench201").calibration == {ACCURACY: HIGH, LATENCY: LOW}
    assert several.of_space("other").calibration == several.of_space("unheard").calibration == several.calibration


def test_a_space_has_the_objectives_learned_of_it(several: Checkpoint, checkpoint: Checkpoint) -> None:
    assert several.objectives_of("nasbench201") == several.objectives_of("unheard") == OBJECTIVES
    assert several.objectives_of("other") == (LATENCY,)
    assert Predictor(several).of_space("nasbench201").objectives_of("other") == (LATENCY,)
    assert checkpoint.objectives_of("nasbench201") == OBJECTIVES


def test_a_space_has_the_objectives_of_its_name(several: Checkpoint) -> None:
    predictor = Predictor(several)
    assert predictor.objectives_of(get_space("nasbench201")) == OBJECTIVES
    with pytest.raises(ValueError, match=r"^space: expected a space or its name, got 3\."):
        predictor.objectives_of(3)  # type: ignore[arg-type]


def test_texts_of_several_spaces_are_each_answered_by_their_own(several: Checkpoint) -> None:
    predictor, texts, spaces = Predictor(several), [*TEXTS, *TEXTS], ["other", "nasbench201", "", "other"]
    found = predictor.predict(texts, [LATENCY], spaces=spaces)
    for row, space in enumerate(spaces):
        alone = predictor.of_space(space or "text").predict([texts[row]], [LATENCY])
        np.testing.assert_allclose(found.values[row], alone.values[0], rtol=1e-5)
    assert predictor.predict(TEXTS, spaces=["other", "other"]).objectives == (LATENCY,)
    assert predictor.predict(TEXTS, spaces=["other", get_space("nasbench201")]).objectives == OBJECTIVES
    assert predictor.predict([], spaces=[]).values.shape == (0, 2, 3)
    of_arrow = predictor.predict(TEXTS, spaces=pa.array(["other", None]))  # type: ignore[arg-type]
    assert of_arrow.objectives == predictor.predict(TEXTS, spaces=pd.Series(["other", np.nan])).objectives == OBJECTIVES
    of_pandas = predictor.predict(TEXTS, spaces=pd.Series(["other", pd.NA], dtype="string"))
    np.testing.assert_array_equal(of_pandas.values, of_arrow.values)
    of_numpy = predictor.predict(TEXTS, spaces=np.array(["other", ""]))  # type: ignore[arg-type]
    np.testing.assert_array_equal(of_numpy.values, of_arrow.values)
    unordered = {"other", "nasbench201"}, {"other": 0, "nasbench201": 1}, pd.DataFrame({"other": [], "nasbench201": []})
    for wrong in (["other"], "other", get_space("fbnet"), *unordered):
        with pytest.raises(ValueError, match="spaces: expected one for each "):
            predictor.predict(TEXTS, spaces=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 3, FBNet])
def test_what_is_no_space_is_refused(several: Checkpoint, wrong: Any) -> None:
    for ask in (Predictor(several).of_space, lambda space: make_pool(several, TEXTS, space=space)):
        with pytest.raises(ValueError, match=r"^space: expected a space or its name, got "):
            ask(wrong)


@pytest.mark.parametrize("misspelled", ["NASBench201", "nas-bench-201", "nasbenhc201"])
def test_a_known_space_in_another_spelling_is_told(several: Checkpoint, misspelled: str) -> None:
    with pytest.warns(
        UserWarning,
        match=f"^space: expected nasbench201, got {misspelled}, which the model does not know: predictions",
    ):
        assert Predictor(several).of_space(misspelled).objectives == OBJECTIVES


@pytest.mark.parametrize(
    "ask",
    [
        lambda known: Predictor(known).predict(TEXTS, spaces=["NASBench201"] * len(TEXTS)),
        lambda known: make_pool(known, TEXTS, space="NASBench201"),
    ],
)
def test_a_space_in_another_spelling_is_told_once(several: Checkpoint, ask: Callable[[Checkpoint], object]) -> None:
    with warnings.catch_warnings(record=True, action="always") as told:
        ask(several)
    assert [str(x.message).partition(",")[0] for x in told] == ["space: expected nasbench201"]


def test_a_narrowed_predictor_answers_several_spaces_as_that_of_all_does(several: Checkpoint) -> None:
    predictor = Predictor(several)
    for narrowed in (predictor.of_space("other"), predictor.of_space("nasbench201")):
        found = narrowed.predict(TEXTS, spaces=["other", "nasbench201"])
        assert found.objectives == OBJECTIVES
        np.testing.assert_array_equal(found.values, predictor.predict(TEXTS, spaces=["other", "nasbench201"]).values)


@pytest.mark.parametrize("path", ["mine.py:Mine", "./mine.py:Mine", "/there/mine.py:Mine"])
def test_a_space_of_ones_own_is_known_by_any_path_to_its_file(several: Checkpoint, path: str, tmp_path: Path) -> None:
    by_space = {"here/mine.py:Mine": {LATENCY: LOW}, "other.py:Mine": {ACCURACY: HIGH}}
    own = replace(several, calibration_by_space=by_space)
    assert own.of_space(path).calibration == {ACCURACY: HIGH, LATENCY: LOW}
    assert (own.objectives_of(path), own.guessed_of(path)) == ((LATENCY,), frozenset())
    assert Predictor(own).of_space(path).objectives == (LATENCY,)
    assert guesses(Predictor(own), [path], [LATENCY]) == ""
    for folder in (tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
        (folder / "mine.py").touch()
    there = replace(own, calibration_by_space={f"{tmp_path}/there/mine.py:Mine": {LATENCY: LOW}})
    assert there.of_space(f"{tmp_path}/here/mine.py:Mine").calibration == own.calibration
    assert there.of_space(f"{tmp_path}/here/../there/mine.py:Mine").calibration == {ACCURACY: HIGH, LATENCY: LOW}
    twice = replace(own, calibration_by_space={**by_space, "there/mine.py:Mine": {}})
    assert twice.of_space(path).calibration == own.calibration


def test_the_class_of_a_space_is_no_name_of_it(several: Checkpoint) -> None:
    own = Predictor(replace(several, calibration_by_space={"my_space.py:Mine": {}}))
    for word in ("mine", "my_space"):
        with pytest.warns(
            UserWarning,
            match=rf"^space: expected my_space\.py:Mine, got {word}, which the model does not know: predictions",
        ):
            own.of_space(word)


def test_spaces_of_other_numbers_are_other_spaces() -> None:
    for name in ("nasbench101", "nasbench301", "darts", "nasbench20"):
        assert checked_space(name, ["nasbench201", "darts2"]) == name


def test_names_without_letters_are_not_taken_for_each_other() -> None:
    assert checked_space("--", ["__"]) == "--"
    assert checked_space("\u641c\u7d22", ["\u7a7a\u95f4"]) == "\u641c\u7d22"


def test_a_space_in_the_home_of_nobody_is_known_by_its_file_name() -> None:
    assert checked_space("~none-such/space.py:Mine", ["/a/space.py:Mine"]) == "/a/space.py:Mine"


def test_a_space_goes_by_its_name(several: Checkpoint) -> None:
    predictor, space = Predictor(several), get_space("nasbench201")
    assert predictor.of_space(space).checkpoint.calibration == several.of_space("nasbench201").calibration
    assert predictor.of_space("/spaces/nasbench201.py:NASBench201").objectives == OBJECTIVES  # a user's own


def test_a_predictor_of_a_space_asks_at_its_levels(several: Checkpoint) -> None:
    everywhere = Predictor(several)
    here, there = everywhere.of_space("nasbench201"), everywhere.of_space("other")
    assert (here.objectives, there.objectives) == (OBJECTIVES, (LATENCY,))
    raw = Predictor(replace(several, calibration={})).predict(TEXTS, quantiles=(0.25, 0.5)).values
    np.testing.assert_allclose(here.predict(TEXTS, quantiles=(0.5,)).values[:, 1, 0], raw[:, 1, 0], rtol=1e-4)
    np.testing.assert_allclose(there.predict(TEXTS, quantiles=(0.5,)).values[:, 0, 0], raw[:, 1, 1], rtol=1e-4)
    np.testing.assert_allclose(everywhere.predict(TEXTS, quantiles=(0.5,)).values[:, :, 0], raw[:, :, 1], rtol=1e-4)
    assert there.predict(TEXTS, [ACCURACY]).values.shape == (2, 1, 3)  # what is asked for by name is answered
    with pytest.raises(ValueError, match=rf"one of the checkpoint's 2 objectives, got .* Did you mean {ACCURACY}"):
        there.predict(TEXTS, [ACCURACY[:-1]])


def test_a_new_objective_is_known_of_every_space(several: Checkpoint) -> None:
    pool = make_pool(several, [*TEXTS, "Conv3\n", "Skip\n"], space="other")
    assert pool.features.shape == (4, 1)
    adapted = adapt(several, pool, "latency_ms@new", np.array([1.0, 2.0, 3.0, np.nan]))
    assert adapted.objectives_of("other") == (LATENCY, "latency_ms@new")
    assert adapted.calibration_by_space == several.calibration_by_space
    again = adapt(several, pool, LATENCY, np.array([1.0, 2.0, 3.0, np.nan]))
    assert again.calibration_by_space == {"nasbench201": {ACCURACY: HIGH, LATENCY: ()}, "other": {LATENCY: ()}}


def test_training_calibrates_every_space(tmp_path: Path) -> None:
    rows = layer_examples(240)
    spaces = np.where(np.arange(240) % 3 == 0, "b", "a")
    labels = np.where((spaces == "b")[:, None] & np.array([True, False]), np.nan, rows.labels)
    examples = Examples(rows.texts, OBJECTIVES, labels, rows.splits, spaces)
    config = TrainConfig(out=tmp_path / "run", model=SIZES, max_steps=2)
    checkpoint = train(config, examples, progress=False).checkpoint
    assert {space: set(known) for space, known in checkpoint.calibration_by_space.items()} == {
        "a": set(OBJECTIVES),
        "b": {LATENCY},
    }
    assert checkpoint.calibration_by_space["a"][LATENCY] != checkpoint.calibration_by_space["b"][LATENCY]
    loaded = Checkpoint.from_pretrained(tmp_path / "run" / "checkpoint")
    assert loaded.calibration_by_space == checkpoint.calibration_by_space
    valid = examples.split("valid")
    judged = evaluate(Predictor(checkpoint), valid).quality["b"][LATENCY]
    part = valid.rows(np.flatnonzero(valid.spaces == "b"))
    own = Predictor(checkpoint.of_space("b")).predict(part.texts, [LATENCY])
    inside = (own.low[:, 0] <= part.labels[:, 1]) & (part.labels[:, 1] <= own.high[:, 0])
    assert judged["coverage_80"] == pytest.approx(inside.mean())


def test_the_command_line_answers_for_every_row_by_its_space(
    several_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    frame = architecture_table(8)
    texts = pd.DataFrame({"space": ["other", "nasbench201"] * 2, "text": ["Conv3\n"] * 4})
    write_table(pd.concat([texts, frame], ignore_index=True), tmp_path / "mixed.parquet")
    table, out = tmp_path / "mixed.parquet", tmp_path / "p.parquet"
    words = ("--table", table, "--checkpoint", several_folder, "--out", out)
    assert nasrlm("predict", *words).status == 0
    written = pd.read_parquet(tmp_path / "p.parquet")[f"{LATENCY}.q0.9"]
    assert written[0] == written[2] > written[1] == written[3]
    write_table(texts[::2], tmp_path / "texts.csv")
    assert nasrlm("predict", "--space", "other", *words[2:], "--table", tmp_path / "texts.csv").status == 0
    assert list(pd.read_parquet(tmp_path / "p.parquet")) == [
        "text",
        "space",
        f"{LATENCY}.q0.1",
        LATENCY,
        f"{LATENCY}.q0.9",
    ]
    shown = nasrlm("predict", "--space", "other", *words[:-2])
    assert "may be unreliable" not in shown.stderr
    assert (LATENCY in shown.stdout, ACCURACY in shown.stdout) == (True, False)


def test_networks_of_several_spaces_are_drawn_of_with_different_noise(
    checkpoint_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    write_table(pd.DataFrame({"space": ["other", "nasbench201"], "text": ["Conv3\n"] * 2}), tmp_path / "two.csv")
    words = ("--table", tmp_path / "two.csv", "--checkpoint", checkpoint_folder, "--samples", 9, "--json")
    first, second = json.loads(nasrlm("predict", *words).stdout)
    assert first[LATENCY]["median"] == second[LATENCY]["median"]  # neither is known to the checkpoint
    assert first[LATENCY]["samples"] != second[LATENCY]["samples"]


def test_rows_without_a_space_are_answered_as_they_were_judged(
    several: Checkpoint, tmp_path: Path, nasrlm: CommandLine
) -> None:
    by_space = {**several.calibration_by_space, "text": {ACCURACY: LOW, LATENCY: LOW}}
    replace(several, calibration_by_space=by_space).save_pretrained(tmp_path / "texts")
    frame = pd.DataFrame({"text": TEXTS, LATENCY: [1.0, 2.0]})
    write_table(frame, tmp_path / "texts.csv")
    words = ("--table", tmp_path / "texts.csv", "--checkpoint", tmp_path / "texts", "--json")
    told = [row[LATENCY]["median"] for row in json.loads(nasrlm("predict", *words).stdout)]
    (judged,) = json.loads(nasrlm("evaluate", *words).stdout)["text"].values()
    assert judged["mae"] == pytest.approx(np.abs(np.array(told) - frame[LATENCY]).mean())


def test_an_objective_that_was_learned_of_other_spaces_alone_is_told(
    several_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    (tmp_path / "network.txt").write_text("Conv3\n")
    words = ("predict", tmp_path / "network.txt", "--checkpoint", several_folder, "--space", "other")
    told = nasrlm(*words, "--objectives", f"{ACCURACY},{LATENCY}")
    reason = "because they were learned from other spaces"
    warning = f"nasrlm: predictions of {ACCURACY} for other may be unreliable, {reason}.\n"
    assert (told.status, told.stderr) == (0, warning)
    labels = pd.DataFrame({"space": "other", "text": TEXTS, ACCURACY: [1.0, 2.0], LATENCY: [1.0, 2.0]})
    write_table(labels, tmp_path / "labels.csv")
    judged = nasrlm("evaluate", "--table", tmp_path / "labels.csv", "--checkpoint", several_folder)
    assert (judged.status, warning in judged.stderr) == (0, True)


def test_predicted_counts_are_told(checkpoint: Checkpoint, tmp_path: Path, nasrlm: CommandLine) -> None:
    of_counts = replace(checkpoint, objectives=("params@onnx", LATENCY), calibration={})
    of_counts.save_pretrained(tmp_path / "counts")
    write_table(pd.DataFrame({"space": "nasbench201", "text": ["Conv3\n"] * 2}), tmp_path / "two.csv")
    words = ("predict", "--table", tmp_path / "two.csv", "--checkpoint", tmp_path / "counts")
    for more in ((), ("--out", tmp_path / "out.csv")):
        told = "nasrlm: params@onnx: predicted here; `nasrlm stats` counts exactly.\n"
        assert nasrlm(*words, *more).stderr.count(told) == 1
        assert "counts exactly" not in nasrlm(*words, *more, "--objectives", LATENCY).stderr


def test_an_objective_that_the_checkpoint_does_not_know_is_no_guess(
    several_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    words = ("--space", "nasbench201", "--objectives", "max:accuracy@nosuch", "--checkpoint", several_folder)
    told = nasrlm("search", *words, "--out", tmp_path / "out")
    assert told.status == 2
    assert told.stderr.startswith(
        "nasrlm: objective: expected one of the checkpoint's 2 objectives, got 'accuracy@nosuch'."
    )


def test_a_space_that_the_checkpoint_has_not_seen_is_told(
    several_folder: Path, tmp_path: Path, nasrlm: CommandLine
) -> None:
    (tmp_path / "network.txt").write_text("Conv3\n")
    words = ("predict", tmp_path / "network.txt", "--checkpoint", several_folder)
    told = nasrlm(*words, "--space", "fbnet")
    assert told.status == 0
    reason = "may be unreliable, because they were learned only from nasbench201, other"
    assert told.stderr.startswith(f"nasrlm: predictions for fbnet {reason}.\n")
    unnamed = f"nasrlm: predictions for networks whose space is not named {reason} (if yours is from one of these, "
    assert nasrlm(*words).stderr.startswith(unnamed)
    assert nasrlm(*words, "--space", "other").stderr == ""


def test_an_objective_that_was_adapted_to_is_no_guess(several: Checkpoint, tmp_path: Path, nasrlm: CommandLine) -> None:
    pool = make_pool(several, [*TEXTS, "Conv3\n", "Skip\n"])
    adapt(several, pool, "latency_ms@new", np.array([1.0, 2.0, 3.0, np.nan])).save_pretrained(tmp_path / "adapted")
    (tmp_path / "network.txt").write_text("Conv3\n")
    words = ("predict", tmp_path / "network.txt", "--checkpoint", tmp_path / "adapted")
    assert nasrlm(*words, "--objectives", "latency_ms@new").stderr == ""
    reason = "may be unreliable, except those of latency_ms@new, because the others were learned only from nasbench201,"
    assert reason in nasrlm(*words).stderr


def adapted_in(checkpoint: Checkpoint, objective: str, spaces: list[str]) -> Checkpoint:
    """The checkpoint after it was adapted to an objective in each of these spaces."""
    for space in spaces:
        pool = make_pool(checkpoint, [*TEXTS, "Conv1\nPool\n"], space=space)
        with warnings.catch_warnings(action="ignore"):  # of texts that spaces share
            checkpoint = adapt(checkpoint, pool, objective, np.array([1.0, 2.0, np.nan]), beside=True)
    return checkpoint


def test_an_objective_that_was_taught_anew_is_of_the_spaces_it_was_taught_in(several: Checkpoint) -> None:
    predictor = Predictor(adapted_in(several, LATENCY, ["fbnet", "nasbench201"]))
    assert predictor.objectives_of("nasbench201") == OBJECTIVES
    assert predictor.objectives_of("other") == ()
    assert guesses(predictor, ["nasbench201", "fbnet"], [LATENCY]) == ""
    assert guesses(predictor, ["other"], [LATENCY]).endswith(
        f"predictions of {LATENCY} for other may be unreliable, because they were learned from other spaces."
    )


def test_an_objective_that_was_adapted_to_is_a_guess_of_other_spaces(
    several: Checkpoint, tmp_path: Path, nasrlm: CommandLine
) -> None:
    learned = adapted_in(several, "latency_ms@new", ["mine/space.py:Mine", "other"])
    learned.save_pretrained(tmp_path / "adapted")
    predictor = Predictor.from_pretrained(tmp_path / "adapted")
    assert guesses(predictor, ["/elsewhere/space.py:Mine", "other"], ["latency_ms@new"]) == ""
    told = guesses(predictor, ["", "fbnet", "darts", "nasbench201"], ["latency_ms@new"])
    assert told == (
        "predictions for darts, fbnet, networks whose space is not named may be unreliable, because they were learned "
        "only from mine/space.py:Mine, other (if yours is from one of these, name it); predictions of latency_ms@new "
        "for nasbench201 may be unreliable, because they were learned from other spaces."
    )


def test_what_was_learned_is_told_of_the_objectives_that_are_guesses(several: Checkpoint) -> None:
    predictor = Predictor(adapted_in(several, "latency_ms@new", ["fbnet"]))
    assert guesses(predictor, ["fbnet", "darts"], [LATENCY, "latency_ms@new"]) == (
        "predictions for darts may be unreliable, because they were learned only from nasbench201, other, fbnet; "
        "predictions for fbnet may be unreliable, except those of latency_ms@new, because the others were learned only "
        "from nasbench201, other."
    )


def test_an_objective_is_a_guess_of_another_space_of_the_same_name(several: Checkpoint, tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        (folder / "space.py").touch()
    one, two = (f"{tmp_path}/{name}/space.py:Mine" for name in ("one", "two"))
    learned = adapted_in(several, "latency_ms@new", [one])
    assert (learned.was_taught("latency_ms@new", one), learned.was_taught("latency_ms@new", two)) == (True, False)
    (tmp_path / "one" / "space.py").unlink()  # moved
    assert learned.was_taught("latency_ms@new", two)
