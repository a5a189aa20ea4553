"""A checkpoint's folder: check and replace it, and read its tokenizer, without torch, whose import takes seconds."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from safetensors import SafetensorError

from nasrlm.files import check_folder
from nasrlm.text.tokenizer import TextTokenizer

README = "README.md"
SPACES_FILE = "spaces.safetensors"
WEIGHT_FILES = ("model.safetensors", SPACES_FILE)
WRITTEN = ("config.json", "tokenizer.json", *WEIGHT_FILES)
UNTITLED = "# nasrlm checkpoint\n"  # the README if nothing more is known


class CheckpointError(ValueError):
    """The error for a folder that is no complete checkpoint of this version."""


def released_folder() -> Path:
    """Return the folder of the checkpoint that comes with the package."""
    return Path(str(files("nasrlm"))) / "released"


def folder_or_released(folder: Path | str | None) -> Path:
    """Return a checkpoint's folder, or that of the released checkpoint if it is None.

    Raises:
        CheckpointError: it is neither None nor a path.
    """
    if not isinstance(folder, str | os.PathLike | None):
        raise CheckpointError(f"checkpoint: expected the path of a folder, got {folder!r:.60}.")
    return released_folder() if folder is None else Path(folder)


def check_complete(folder: Path) -> None:
    """Check that a folder has all files of a checkpoint.

    Raises:
        CheckpointError: a file is missing; the message names it.
    """
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        if not (folder / name).is_file():
            left = folder.absolute().parent / f".{folder.absolute().name}.old"
            if left.is_dir() and not folder.exists():
                raise CheckpointError(
                    f"{folder}: expected a checkpoint, got one whose save was interrupted. Rename {left.name} to "
                    f"{folder.name}."
                )
            raise CheckpointError(
                f"{folder}: expected a checkpoint folder with config.json, tokenizer.json and model.safetensors, got "
                f"no {name}. Give the checkpoint folder of a finished `nasrlm train`."
            )


def read_tokenizer(folder: Path) -> TextTokenizer:
    """Read the tokenizer of a checkpoint's folder, without a limit on the length of texts.

    Raises:
        CheckpointError: a file is missing, or the tokenizer is broken.
    """
    check_complete(folder)
    try:
        return TextTokenizer.load(folder / "tokenizer.json")
    except ValueError as e:
        raise CheckpointError(str(e)) from e


def replace_folder(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a checkpoint's folder; an older checkpoint is replaced once all files are written, other files stay.

    Args:
        folder: absolute.
        write: writes the checkpoint's files to the folder that it is given, and creates it if needed.

    Raises:
        ValueError: as ``check_replaceable``.
        OSError: the folder cannot be written; it is unchanged.
    """
    check_replaceable(folder)
    fresh, old = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    if old.exists() and not folder.exists():  # a save was killed between its two renames
        os.replace(old, folder)
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    try:
        if folder.exists():
            shutil.copytree(folder, fresh, symlinks=True, ignore=lambda at, _: WRITTEN if at == str(folder) else ())
        write(fresh)
    except BaseException as e:
        shutil.rmtree(fresh, ignore_errors=True)
        if isinstance(e, SafetensorError) or (isinstance(e, OSError) and e.filename is None):  # as on a full disk
            got = (e.strerror if isinstance(e, OSError) else None) or str(e)
            advice = " Free some space." * (os.strerror(errno.ENOSPC) in got)
            raise OSError(f"{folder}: expected to write a checkpoint, got {got}.{advice}") from e
        raise
    if folder.exists():
        os.replace(folder, old)
    os.replace(fresh, folder)
    shutil.rmtree(old, ignore_errors=True)


def check_replaceable(folder: Path) -> None:
    """Check, before long work, that ``save_pretrained`` may write to ``folder``.

    Raises:
        ValueError: it is a file, the released checkpoint's folder, or a folder with other things than a checkpoint,
            such as the working directory.
        OSError: it or its parent folder cannot be written; the message names which.
    """
    place = folder.resolve()
    if Path.cwd().is_relative_to(place):
        which = "the working directory" if place == Path.cwd() else f"{place}, which holds the working directory"
        raise ValueError(f"checkpoint: expected a separate folder, got {which}. Choose a folder inside it.")
    if place == released_folder().resolve():
        raise ValueError(
            f"{folder}: expected a folder of your own, got that of the released checkpoint. Choose another."
        )
    if place.exists() and not place.is_dir():
        raise ValueError(f"{folder}: expected a folder for the checkpoint, got a file. Choose another path.")
    if place.is_dir() and not (place / "config.json").exists() and (others := sorted(place.iterdir())):
        raise ValueError(
            f"{folder}: expected a new folder for the checkpoint, an empty one or an earlier checkpoint, got one with "
            f"{others[0].name} in it. Choose another."
        )
    check_folder(place.parent)  # the new one is written there, then renamed
    check_folder(place)  # whose mode the new one gets
