"""A study's folder: one study in it, every file in it whole at every moment."""

import json
from pathlib import Path
from typing import Any

from nasrlm.files import write_atomically
from studies.config import SearchConfig

STUDY_FILE = "study.json"
HISTORY_FILE = "history.parquet"
CHECKPOINT = "checkpoint_sha256"  # of a config, and of a study in a storage


class StudyError(ValueError):
    """A folder that cannot take, or does not hold, the study that was asked for."""


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write strict JSON, readable by people; a NaN in it is our own mistake."""
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def read_study(folder: Path) -> dict[str, Any]:
    """The content of a folder's study.json.

    Raises:
        StudyError: there is none, or it is not a study's JSON.
    """
    path = folder / STUDY_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(
            f"{folder}: expected a study's folder, got no {STUDY_FILE}. Run a search into it first."
        ) from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: expected JSON, got {error}. Restore it, or search anew elsewhere.") from error
    if not isinstance(values, dict) or not isinstance(values.get("config"), dict):
        raise StudyError(f"{path}: expected an object with a config, got another. Restore it.")
    return values


def holds_study(folder: Path) -> bool:
    """Whether a search has begun to write there."""
    return (folder / STUDY_FILE).exists() or (folder / HISTORY_FILE).exists()


def open_folder(folder: Path, config: SearchConfig, *, resume: bool) -> None:
    """Make a new study's folder, or check that the study in it is the one to resume.

    Raises:
        StudyError: it holds a study and ``resume`` is False, or the study has another config.
        OSError: it cannot be written.
    """
    if holds_study(folder):
        if not resume:
            raise StudyError(
                f"{folder}: expected a folder without a study, got one that holds a study. "
                "Pass --resume to go on with it, or choose another folder."
            )
        _check_same_config(folder, config)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder}: expected a folder that can be made, got {error.strerror}. Choose another.") from error
    write_json(folder / STUDY_FILE, {"status": "running", "config": config.to_dict()})


def check_same_checkpoint(place: str, recorded: str, config: SearchConfig) -> None:
    """A study goes on with the checkpoint that it was begun with, as far as both were told.

    Raises:
        StudyError: ``recorded`` is another than the config's.
    """
    asked = config.checkpoint_sha256
    if recorded and asked and recorded != asked:
        raise StudyError(
            f"{place}: expected the checkpoint the study was begun with, {recorded}, got {asked}. "
            "Name that checkpoint, or begin another study."
        )


def _check_same_config(folder: Path, config: SearchConfig) -> None:
    recorded, asked = read_study(folder)["config"], config.to_dict()
    check_same_checkpoint(str(folder), recorded.get(CHECKPOINT, ""), config)
    del asked[CHECKPOINT]
    different = [name for name in asked if asked[name] != recorded.get(name)]
    if different:
        changes = ", ".join(f"{name} {asked[name]!r} (recorded {recorded.get(name)!r})" for name in different)
        raise StudyError(
            f"{folder}: expected the config the study was begun with, got {changes}. "
            "Resume with the recorded values, or choose another folder."
        )
