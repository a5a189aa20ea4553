"""Results that are appended one JSON line each: a run that is killed has lost nothing that was finished."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasrlm.files import to_json, write_atomically


def finished_lines(path: Path) -> list[bytes]:
    """The whole lines of a file, none if there is no file; without a last one that a killed run was writing.

    Raises:
        ValueError: what is written at its end begins no JSON object, so no run has written it.
    """
    whole, broken = _parts(path)
    if broken and not broken.startswith(b"{"):
        raise ValueError(
            f"{path}: expected a JSON object in every line, got {broken[:40]!r} at its end. Move the file."
        )
    return whole.splitlines()


def append_line(path: Path, values: Mapping[str, Any]) -> None:
    """Add a line and have it on the disk; a last one that is not whole is cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not _ends_with_a_line(path):
        write_atomically(path, _parts(path)[0])
    with path.open("a") as stream:
        stream.write(to_json(values) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def _ends_with_a_line(path: Path) -> bool:
    """Whether a file ends with a whole line, is empty or is missing; reads only its last byte, as files grow long."""
    if not path.is_file():
        return True
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - 1))
        return stream.read() in (b"", b"\n")


def _parts(path: Path) -> tuple[bytes, bytes]:
    """The whole lines, and what follows them."""
    whole, newline, broken = (path.read_bytes() if path.is_file() else b"").rpartition(b"\n")
    return whole + newline, broken
