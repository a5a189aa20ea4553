"""A study's folder, which holds one study; its files are written atomically."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from nasrlm.files import BusyFolderError, only_one_in, write_atomically
from studies.config import SearchConfig

STUDY_FILE = "study.json"
HISTORY_FILE = "history.parquet"
FRONT_FILE = "front.csv"
RUNNING, FINISHED = "running", "finished"  # statuses of a study
CHECKPOINT, SPACE = "checkpoint_sha256", "space_sha256"  # names in a config, and in a study in a storage
DIGESTS = {  # what each digest is of, and advice if another one is given
    CHECKPOINT: ("checkpoint", "Use that checkpoint"),
    SPACE: ("space", "Undo the changes in its file"),
}
MAY_CHANGE = ("trials", "earlier_trials", "options")  # attributes of a config that may change when a study is resumed

# ``evaluator`` in older studies run from Python, whatever it was; their configs lack SPACE.
UNRECORDED_EVALUATOR = "surrogate"

HOW_TO_RESUME = "Resume the search to continue from the results so far (the same command with --resume)."


class StudyError(ValueError):
    """A study cannot be started, resumed or read."""


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write indented, strict JSON; a NaN in it raises, because it would be a bug."""
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, f"{text}\n".encode())


def read_study(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's study.json.

    Raises:
        StudyError: the file is missing, or is not the JSON of a study.
    """
    path = folder / STUDY_FILE
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise StudyError(
            f"{folder}: expected the folder of a study, got no {STUDY_FILE}. Run a search with this folder first."
        ) from None
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path}: expected JSON, got {error}. Restore it, or start a new search in another folder."
        ) from error
    config = values.get("config") if isinstance(values, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get("options", {}), dict):
        raise StudyError(f"{path}: expected an object with a config and its options, got something else. Restore it.")
    counts = {"trials": [config.get("trials", 1)], "earlier_trials": config.get("earlier_trials", [])}
    for name, given in counts.items():
        if not (isinstance(given, list) and all(isinstance(count, int) for count in given)):
            raise StudyError(f"{path}: expected whole numbers as {name}, got {config[name]!r}. Restore it.")
    if not isinstance(seconds := values.get("seconds", 0.0), int | float):
        raise StudyError(f"{path}: expected a number of seconds, got {seconds!r}. Restore it.")
    return dict(values)


def config_given(folder: Path) -> dict[str, Any]:
    """Return the recorded config of a folder's study; {} if there is no study."""
    return dict(read_study(folder)["config"]) if (folder / STUDY_FILE).exists() else {}


def holds_study(folder: Path) -> bool:
    """Return whether a folder has files of a study."""
    return (folder / STUDY_FILE).exists() or (folder / HISTORY_FILE).exists()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other searches out of a folder; see ``only_one_in``.

    Raises:
        StudyError: another search is running there.
        OSError: the folder cannot be written.
    """
    try:
        with only_one_in(folder, "search"):
            yield
    except BusyFolderError as error:
        raise StudyError(str(error)) from None


def open_folder(folder: Path, config: SearchConfig, *, resume: bool) -> SearchConfig:
    """Start a study in a folder, or check that the study in it is the one to resume.

    Returns:
        The config with the earlier numbers of trials of the study.

    Raises:
        StudyError: the folder holds a study, but ``resume`` is False or the study has another config or more trials; or
            the folder holds a front.csv without a study.
        OSError: the folder cannot be written.
    """
    if holds_study(folder):
        if not resume:
            raise StudyError(
                f"{folder}: expected a folder without a study, got one that holds a study. "
                "Resume it (--resume), or choose another folder."
            )
        return _resumed(folder, config)
    if (folder / FRONT_FILE).exists():
        raise StudyError(
            f"{folder}: expected a folder without a study, got one with the {FRONT_FILE} of something else. "
            "Choose another folder."
        )
    write_json(folder / STUDY_FILE, {"status": RUNNING, "config": config.to_dict()})
    return config


def _resumed(folder: Path, config: SearchConfig) -> SearchConfig:
    """Return the config of a folder's study with the new trials and options, and write these to study.json."""
    study = read_study(folder)
    recorded = study["config"]
    _check_same_config(folder, recorded, config)
    trials, earlier = recorded.get("trials", config.trials), tuple(recorded.get("earlier_trials", ()))
    if config.trials < trials:
        raise StudyError(
            f"{folder}: expected at least the {trials} trials of the study, got {config.trials}. Resume with as many, "
            "or choose another folder."
        )
    more = config.trials > trials
    options = config.options or recorded.get("options", {})  # a config made in Python has none
    resumed = replace(config, earlier_trials=(*earlier, trials) if more else earlier, options=options)
    given = {name: value for name, value in resumed.to_dict().items() if name in MAY_CHANGE}
    status = {"status": RUNNING} if more else {}
    write_json(folder / STUDY_FILE, study | status | {"config": recorded | given})
    return resumed


def check_same_digests(place: str, recorded: Mapping[str, Any], config: SearchConfig) -> None:
    """Check that a study is resumed with the same checkpoint and space; unknown digests are not compared.

    Args:
        place: place of the study, for messages.
        recorded: the study's DIGESTS, possibly among other values.
        config: the new config.

    Raises:
        StudyError: a digest differs from the config's.
    """
    for name, (what, advice) in DIGESTS.items():
        known, asked = recorded.get(name), getattr(config, name)
        # Digests by different versions of the code are not compared, because their texts may differ.
        same_writer = str(known).rpartition(":")[0] == str(asked).rpartition(":")[0]
        if known and asked and same_writer and known != asked:
            raise StudyError(
                f"{place}: expected the {what} that the study was started with, {known}, got {asked}. {advice}, or "
                "start another study."
            )


def _check_same_config(folder: Path, recorded: dict[str, Any], config: SearchConfig) -> None:
    asked = config.to_dict()
    names = [name for name in asked if name not in (*DIGESTS, *MAY_CHANGE)]
    pairs = {name: (asked[name], recorded.get(name)) for name in names}
    if pairs["evaluator"][1] == UNRECORDED_EVALUATOR and SPACE not in recorded:
        del pairs["evaluator"]
    mine, theirs = pairs["guide"]
    if isinstance(mine, dict) and isinstance(theirs, dict):
        del pairs["guide"]
        pairs |= {f"guide.{name}": (mine.get(name), theirs.get(name)) for name in mine | theirs}
    different = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    if different:
        changes = ", ".join(f"{name} {new!r} (recorded {old!r})" for name, (new, old) in different.items())
        raise StudyError(
            f"{folder}: expected the config that the study was started with, got {changes}. Resume with the recorded "
            "values, or choose another folder."
        )
    check_same_digests(str(folder), recorded, config)  # last: they also depend on the config, such as the space
