"""Results that are appended one JSON line each: a run that is killed has lost nothing that was finished."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nasrlm.files import to_json, write_atomically


def finished_lines(path: Path) -> list[bytes]:
    """The whole lines of a file, none if there is no file; a last one that a killed run was writing is cut off."""
    whole, _, broken = (path.read_bytes() if path.is_file() else b"").rpartition(b"\n")
    if broken:
        write_atomically(path, whole + b"\n" if whole else b"")
    return whole.splitlines()


def append_line(path: Path, values: Mapping[str, Any]) -> None:
    """Add a line and have it on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(to_json(values) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
