"""Append results to a file as JSON lines, so that a killed run loses none that were finished."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasrlm.files import to_json, write_atomically


def finished_lines(path: Path) -> list[bytes]:
    """Return the complete lines of a file, without a last one that a killed run left incomplete; none without a file.

    Raises:
        ValueError: an incomplete last line does not begin a JSON object, so it was not written by a run.
    """
    whole, broken = _parts(path)
    if broken and not broken.startswith(b"{"):
        raise ValueError(
            f"{path}: expected a JSON object in every line, got {broken[:40]!r} at its end. Move the file."
        )
    return whole.splitlines()


def append_line(path: Path, values: Mapping[str, Any]) -> None:
    """Append a line and flush it to the disk; an incomplete last line is removed before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _ends_with_a_line(path):
        write_atomically(path, _parts(path)[0])
    with path.open("a", encoding="utf-8") as stream:
        stream.write(to_json(values) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _ends_with_a_line(path: Path) -> bool:
    """Return whether a file ends with a complete line, is empty or is missing; reads only its last byte."""
    if not path.is_file():
        return True
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 1))
        return stream.read() in (b"", b"\n")


def _parts(path: Path) -> tuple[bytes, bytes]:
    """Return the complete lines of a file, and the rest."""
    whole, newline, broken = (path.read_bytes() if path.is_file() else b"").rpartition(b"\n")
    return whole + newline, broken
