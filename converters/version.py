"""The version of the code that writes texts and counts networks, as a hash of its source."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import converters
import spaces


@cache
def code_digest() -> str:
    """Return a hash of the source of ``spaces`` and ``converters``.

    Results with the same digest may be combined; results with different digests may disagree.
    """
    digest = hashlib.sha256()
    for package in (spaces, converters):
        (folder,) = map(Path, package.__path__)
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".onnxtxt")):
            digest.update(f"{path.relative_to(folder).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
