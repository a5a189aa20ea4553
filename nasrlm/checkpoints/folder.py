"""Check a checkpoint's folder and read its tokenizer, without importing torch, which takes seconds."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from nasrlm.text.tokenizer import TextTokenizer

README = "README.md"
UNTITLED = "# nasrlm checkpoint\n"  # the README if nothing more is known


class CheckpointError(ValueError):
    """The error for a folder that is no complete checkpoint of this version."""


def released_folder() -> Path:
    """Return the folder of the checkpoint that comes with the package."""
    return Path(str(files("nasrlm"))) / "released"


def folder_or_released(folder: Path | str | None) -> Path:
    """Return a checkpoint's folder, or that of the released checkpoint if it is None."""
    return released_folder() if folder is None else Path(folder)


def check_complete(folder: Path) -> None:
    """Check that a folder has all files of a checkpoint.

    Raises:
        CheckpointError: a file is missing; the message names it.
    """
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        if not (folder / name).is_file():
            left = folder.with_name(f".{folder.name}.old")
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
