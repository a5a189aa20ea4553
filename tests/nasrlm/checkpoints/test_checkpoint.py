"""A checkpoint comes back as it was; a broken one is refused in one line that says what is broken."""

import errno
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nasrlm.adaptation.pool import make_pool
from nasrlm.checkpoints.checkpoint import Checkpoint, round_weights
from nasrlm.checkpoints.folder import CheckpointError
from nasrlm.predictor import Predictor
from nasrlm.text.tokenizer import TextTokenizer
from tests.nasrlm.scenes import layer_examples, layer_table

EMBEDDING = "encoder.embedding.weight"
FULL = os.strerror(errno.ENOSPC)


def edit_config(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return edit


def edit_weights(change: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return edit


def truncate(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:100])


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


BREAKAGES = {
    "no config": (remove("config.json"), "got no config.json"),
    "no tokenizer": (remove("tokenizer.json"), "got no tokenizer.json"),
    "no weights": (remove("model.safetensors"), "got no model.safetensors"),
    "half a config": (truncate("config.json"), "config.json: expected JSON, got"),
    "a list for a config": (lambda folder: (folder / "config.json").write_text("[]"), "expected format_version 1 to"),
    "newer": (
        edit_config(lambda c: c.update(format_version=7)),
        "expected format_version 1 to 6, got 7. A newer",
    ),
    "no version": (
        edit_config(lambda c: c.pop("format_version")),
        "expected format_version 1 to 6, got None",
    ),
    "no objectives": (edit_config(lambda c: c.pop("objectives")), "got KeyError('objectives')"),
    "no card": (edit_config(lambda c: c.pop("card")), "got KeyError('card')"),
    "a number for encoders": (
        edit_config(lambda c: c.update(encoders=5)),
        "config.json: expected a model of this version",
    ),
    "numbers for encoders": (edit_config(lambda c: c.update(encoders=[5])), "spaces.safetensors"),
    "no encoders": (
        edit_config(lambda c: c.update(encoders=["here"])),
        "spaces.safetensors: expected a safetensors file, got No such file or directory. Copy the whole checkpoint.",
    ),
    "unknown size": (edit_config(lambda c: c["model"].update(girth=3)), "unexpected keyword argument 'girth'"),
    "impossible size": (
        edit_config(lambda c: c["model"].update(num_heads=0)),
        "num_heads: expected an int of 1 or more",
    ),
    "impossible code": (edit_config(lambda c: c["number_code"].update(num_digits=0)), "expected 1 to 15 digits"),
    "other size": (edit_config(lambda c: c["model"].update(hidden=48)), "down.weight of shape (16, 48), got (16, 32)"),
    "more objectives": (edit_config(lambda c: c["objectives"].append("a@b")), "of shape (3, 16), got (2, 16)"),
    "half a tokenizer": (truncate("tokenizer.json"), "expected a tokenizer.json of HF tokenizers"),
    "half the weights": (truncate("model.safetensors"), "expected a safetensors file, got"),
    "reshaped tensor": (edit_weights(lambda w: w.update({EMBEDDING: w[EMBEDDING].T.contiguous()})), EMBEDDING),
    "missing tensor": (edit_weights(lambda w: w.pop(EMBEDDING)), f"expected tensor {EMBEDDING} of shape ("),
    "no numbers": (edit_weights(lambda w: w[EMBEDDING].fill_(math.nan)), f"ones in tensor {EMBEDDING}."),
    "no end": (edit_weights(lambda w: w[EMBEDDING].fill_(math.inf)), f"ones in tensor {EMBEDDING}."),
    "absurd numbers": (
        edit_weights(lambda w: w["decoder.head.weight"].fill_(1e30)),
        "expected numbers within ±1e+06, got NaN or larger ones in tensor decoder.head.weight.",
    ),
    "ten million layers": (
        edit_config(lambda c: c["model"].update(num_encoder_layers=10**7)),
        "ModelConfig: num_encoder_layers: expected at most 1,000 layers, got 10,000,000.",
    ),
    "a head and tail of one token": (
        edit_config(lambda c: c["model"].update(truncation="head_and_tail", max_text_tokens=1)),
        "expected max_text_tokens of 2 or more for truncation head_and_tail, got 1.",
    ),
    "descending levels": (
        edit_config(lambda c: c.update(calibration={"a@b": [level / 100 for level in range(99, 0, -1)]})),
        "calibration of a@b: expected 99 non-decreasing levels in [0, 1], got [0.99, ",
    ),
    "few levels": (edit_config(lambda c: c.update(calibration={"a@b": [0.5]})), "calibration of a@b: expected 99 non"),
    "few levels of a space": (
        edit_config(lambda c: c.update(calibration_by_space={"here": {"a@b": [0.5]}})),
        "calibration of a@b: expected 99 non",
    ),
    "no calibration": (edit_config(lambda c: c.update(calibration=[])), "expected levels by objective, got list"),
    "numbers of another kind": (
        edit_weights(lambda w: w.update({EMBEDDING: w[EMBEDDING] > 0})),
        f"expected tensor {EMBEDDING} of torch.float32, got torch.bool.",
    ),
    "an objective twice": (
        edit_config(lambda c: c.update(objectives=["a@b", "a@b"])),
        "objectives: expected a list of different names, got ['a@b', 'a@b']",
    ),
    "a word for objectives": (edit_config(lambda c: c.update(objectives="ab")), "a list of different names, got ab"),
    "a list for a card": (edit_config(lambda c: c.update(card=[1])), "expected a model of this version, got TypeError"),
    "spaces of no readouts": (
        edit_config(lambda c: c.update(readout_spaces=["here"])),
        "readout_spaces: expected 0 names, got ['here']",
    ),
    "an unknown backbone": (
        edit_config(lambda c: c["model"].update(backbone="big")),
        "backbone big without backbone_sizes",
    ),
    "a size beyond all memory": (
        edit_config(lambda c: c["model"].update(hidden=10**13)),
        "config.json: expected a model of this version, got RuntimeError",
    ),
    "extra tensor": (edit_weights(lambda w: w.update(extra=torch.zeros(2))), "tensor extra of shape none, got (2,)"),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_broken_checkpoint_is_refused_in_one_line(checkpoint_folder: Path, tmp_path: Path, breakage: str) -> None:
    damage, message = BREAKAGES[breakage]
    folder = tmp_path / "broken"
    shutil.copytree(checkpoint_folder, folder)
    damage(folder)
    with pytest.raises(CheckpointError) as raised:
        Checkpoint.from_pretrained(folder)
    assert message in str(raised.value)
    assert str(folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"got no config\.json\. Give the checkpoint folder of a finished `nasrlm train`"
    ):
        Checkpoint.from_pretrained(tmp_path / "nowhere")


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_torch_does_not_have_is_refused(checkpoint_folder: Path, device: str) -> None:
    with pytest.raises(ValueError, match=f"device: expected one that torch can use here, got '{device}' "):
        Checkpoint.from_pretrained(checkpoint_folder, device)


def test_a_checkpoint_comes_back_as_it_was(checkpoint: Checkpoint, checkpoint_folder: Path) -> None:
    loaded = Checkpoint.from_pretrained(checkpoint_folder)
    assert loaded.model.config == checkpoint.model.config
    assert loaded.model.code == checkpoint.model.code
    assert loaded.objectives == checkpoint.objectives
    assert loaded.calibration == checkpoint.calibration
    assert loaded.card == checkpoint.card
    assert not loaded.model.training
    for name, tensor in checkpoint.model.state_dict().items():
        torch.testing.assert_close(loaded.model.state_dict()[name], tensor, rtol=0, atol=0)
    texts = ["Conv3\nPool\n", "Skip\n"]
    assert Predictor(loaded).predict(texts).values.tolist() == Predictor(checkpoint).predict(texts).values.tolist()


def test_a_checkpoint_of_before_a_key_was_added_is_loaded(checkpoint_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoint_folder, tmp_path / "old")
    sizes = ("width", "num_heads", "num_encoder_layers", "num_decoder_layers", "hidden", "dropout", "max_text_tokens")
    edit_config(lambda c: c.update(model={name: c["model"][name] for name in sizes}))(tmp_path / "old")
    loaded = Checkpoint.from_pretrained(tmp_path / "old")
    assert loaded.model.config == Checkpoint.from_pretrained(checkpoint_folder).model.config


def test_weights_of_16_bits_make_a_file_half_as_long(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path
) -> None:
    rounded = replace(checkpoint, model=deepcopy(checkpoint.model), weight_bits=16)
    round_weights(rounded.model)
    rounded.save_pretrained(tmp_path)
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (tmp_path, checkpoint_folder)]
    assert sizes[0] < 0.6 * sizes[1]
    loaded = Checkpoint.from_pretrained(tmp_path)
    assert (loaded.weight_bits, checkpoint.weight_bits, loaded.sha256) == (16, 32, rounded.sha256)
    for name, weights in checkpoint.model.named_parameters():
        torch.testing.assert_close(loaded.model.get_parameter(name), weights, rtol=1e-3, atol=1e-7)
    with torch.no_grad():
        rounded.model.encoder.norm.weight[0] = 1e5
    with pytest.raises(ValueError, match=r"expected weights within ±65,504 for 16, got larger ones in encoder.norm"):
        round_weights(rounded.model)


def test_its_files_are_those_of_hugging_face(checkpoint_folder: Path) -> None:
    names = {"config.json", "model.safetensors", "tokenizer.json"}
    assert {path.name for path in checkpoint_folder.iterdir()} == names
    assert {path.name for path in checkpoint_folder.parent.iterdir()} == {checkpoint_folder.name}


def test_saving_again_replaces_the_checkpoint_and_nothing_else(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = tmp_path / "run" / "checkpoint"
    checkpoint.save_pretrained(folder)
    (folder / "README.md").write_text("mine")
    (folder / "notes").mkdir()
    (folder / "notes" / "today").write_text("mine too")
    replace(checkpoint, card={"valid_tau": float("nan")}).save_pretrained(folder)
    assert Checkpoint.from_pretrained(folder).card == {"valid_tau": None}
    assert (folder / "README.md").read_text(encoding="utf-8") == "mine"
    assert (folder / "notes" / "today").read_text() == "mine too"
    assert [path.name for path in folder.parent.iterdir()] == ["checkpoint"]


def test_saving_again_writes_through_no_link(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder, store = tmp_path / "checkpoint", tmp_path / "store"
    checkpoint.save_pretrained(folder)
    folder.rename(store)
    folder.mkdir()
    for path in store.iterdir():
        (folder / path.name).symlink_to(path)
    replace(checkpoint, card={"steps": 9}).save_pretrained(folder)
    assert Checkpoint.from_pretrained(folder).card == {"steps": 9}
    assert Checkpoint.from_pretrained(store).card == checkpoint.card


def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.save_pretrained(tmp_path / "checkpoint", "# The first\n")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nasrlm.checkpoints.checkpoint.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        replace(checkpoint, card={"steps": 9}).save_pretrained(tmp_path / "checkpoint", "# The second\n")
    assert Checkpoint.from_pretrained(tmp_path / "checkpoint").card == checkpoint.card
    assert (tmp_path / "checkpoint" / "README.md").read_text(encoding="utf-8") == "# The first\n"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("error", [SafetensorError(FULL), OSError(errno.ENOSPC, FULL)])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool, error: Exception
) -> None:
    if is_there:
        checkpoint.save_pretrained(tmp_path / "checkpoint")

    def full_disk(_: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr("nasrlm.checkpoints.checkpoint.save_file", full_disk)
    with pytest.raises(OSError, match=rf"to write a checkpoint, got {FULL}\. Free some space\.$"):
        replace(checkpoint, card={"steps": 9}).save_pretrained(tmp_path / "checkpoint")
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"] * is_there
    assert not is_there or Checkpoint.from_pretrained(tmp_path / "checkpoint").card == checkpoint.card


def test_what_a_checkpoint_says_of_itself_comes_with_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    checkpoint.save_pretrained(tmp_path / "checkpoint")
    (tmp_path / "checkpoint" / "README.md").symlink_to(tmp_path / "mine.md")
    checkpoint.save_pretrained(tmp_path / "checkpoint", "# Größer\n")
    assert (tmp_path / "checkpoint" / "README.md").read_text(encoding="utf-8") == "# Größer\n"
    assert (tmp_path / "mine.md").read_text() == "mine"


def test_its_digest_tells_how_texts_are_truncated(checkpoint: Checkpoint) -> None:
    model, digests = deepcopy(checkpoint.model), set()
    for truncation, context in (("error", 99), ("error", 98), ("head", 98), ("tail", 98), ("tail", 99)):
        model.config = replace(model.config, truncation=truncation, max_text_tokens=context)
        digests.add(replace(checkpoint, model=model).sha256)
    assert len(digests) == 4  # a longer context that texts have to fit into changes no prediction


def test_its_digest_tells_weights_tokenizer_and_calibration(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path
) -> None:
    assert Checkpoint.from_pretrained(checkpoint_folder).sha256 == replace(checkpoint, card={}).sha256
    folder = shutil.copytree(checkpoint_folder, tmp_path / "changed")
    edit_weights(lambda weights: weights[EMBEDDING].view(-1)[0].add_(1))(folder)
    assert Checkpoint.from_pretrained(folder).sha256 != checkpoint.sha256
    other = TextTokenizer.train(["other"], vocabulary_size=300)
    assert replace(checkpoint, tokenizer=other).sha256 != checkpoint.sha256
    levels = {name: np.linspace(0.01, 0.5, 99).tolist() for name in checkpoint.objectives}
    for changes in ({"calibration": levels}, {"calibration_by_space": {"fbnet": levels}}):
        assert replace(checkpoint, **changes).sha256 != checkpoint.sha256


def test_a_folder_that_holds_the_working_directory_is_not_replaced(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "sub")
    with pytest.raises(ValueError, match=r"project, which holds the working directory\. Choose a folder inside it\."):
        checkpoint.save_pretrained("..")


def test_a_file_is_no_place_for_a_checkpoint(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(ValueError, match=r"notes: expected a folder for the checkpoint, got a file"):
        checkpoint.save_pretrained(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"
    with pytest.raises(OSError, match=r"notes: expected a folder that can be written, got Not a directory"):
        checkpoint.save_pretrained(tmp_path / "notes" / "new")


def test_the_released_checkpoint_is_not_replaced(
    checkpoint: Checkpoint, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = shutil.copytree(checkpoint_folder, tmp_path / "released")
    monkeypatch.setattr("nasrlm.checkpoints.folder.released_folder", lambda: released)
    (tmp_path / "link").symlink_to(released)
    before = (released / "config.json").read_bytes()
    for folder in (released, tmp_path / "link"):
        with pytest.raises(ValueError, match=r"expected a folder of your own, got that of the released checkpoint\."):
            replace(checkpoint, card={"steps": 9}).save_pretrained(folder)
    assert (released / "config.json").read_bytes() == before


def test_a_folder_of_other_things_is_no_place_for_a_checkpoint(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("mine")
    with pytest.raises(ValueError, match=r"notes: expected a new folder .* an empty one or an earlier checkpoint, got"):
        checkpoint.save_pretrained(tmp_path / "notes")
    assert [(path.name, path.read_text()) for path in (tmp_path / "notes").iterdir()] == [("README.md", "mine")]
    (tmp_path / "empty").mkdir()
    checkpoint.save_pretrained(tmp_path / "empty")
    (tmp_path / "empty" / "README.md").write_text("mine")
    checkpoint.save_pretrained(tmp_path / "empty")
    assert (tmp_path / "empty" / "README.md").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_copied(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoint"
    checkpoint.save_pretrained(folder)
    make = tempfile.TemporaryDirectory

    def as_if_read_only(*, dir: Path) -> tempfile.TemporaryDirectory[str]:  # root may write to any
        if dir == folder:
            raise PermissionError(errno.EACCES, "Permission denied")
        return make(dir=dir)

    monkeypatch.setattr("nasrlm.files.tempfile.TemporaryDirectory", as_if_read_only)
    with pytest.raises(OSError, match=r"checkpoint: expected a folder that can be written, got Permission denied\."):
        replace(checkpoint, card={"steps": 9}).save_pretrained(folder)
    assert Checkpoint.from_pretrained(folder).card == checkpoint.card


def test_a_save_killed_between_its_renames_loses_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = tmp_path / "ck"
    checkpoint.save_pretrained(folder)
    (folder / "notes.md").write_text("mine")
    folder.rename(tmp_path / ".ck.old")
    with pytest.raises(CheckpointError, match=r"ck: .* got one whose save was interrupted\. Rename \.ck\.old to ck\."):
        Checkpoint.from_pretrained(folder)
    checkpoint.save_pretrained(folder)
    assert (folder / "notes.md").read_text() == "mine"


def test_what_a_notebook_shows_of_checkpoints_pools_and_examples_is_short(trained: Checkpoint) -> None:
    rows = layer_table(3)
    count = sum(weights.numel() for weights in trained.model.parameters())
    sizes = f"{len(trained.objectives)} objectives, {len(trained.spaces)} spaces, {count:,} parameters"
    assert repr(trained) == f"Checkpoint({sizes}; see objectives, spaces, card)"
    pool = make_pool(trained, rows["text"].tolist())
    assert repr(pool) == f"Pool(3 texts, {len(pool.objectives)} objectives; see texts, objectives, features)"
    examples = layer_examples(5)
    shown = f"5 texts x {len(examples.objectives)} objectives; see texts, objectives, labels, splits, spaces"
    assert repr(examples) == f"Examples({shown})"


def test_what_is_no_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for here in ("", "."):
        with pytest.raises(CheckpointError, match=r"^\.: expected a checkpoint folder with .*, got no config\.json\."):
            Checkpoint.from_pretrained(here)
    for wrong in (3, ["released"], b"released"):
        with pytest.raises(CheckpointError, match=r"checkpoint: expected the path of a folder, got "):
            Checkpoint.from_pretrained(wrong)  # type: ignore[arg-type]
