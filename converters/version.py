"""Which code writes texts and counts networks."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import converters
import spaces


@cache
def code_digest() -> str:
    """Hash of the spaces' and the converters' source.

    Results of one digest may be put together, those of two may differ.
    """
    digest = hashlib.sha256()
    for package in (spaces, converters):
        (folder,) = map(Path, package.__path__)
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".onnxtxt")):
            digest.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
