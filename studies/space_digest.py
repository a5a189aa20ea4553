"""A digest of a user's own space, to detect changes since a study was begun."""

import hashlib
from importlib.metadata import version
from typing import Any

import numpy as np

from converters import to_measured_text
from converters.version import code_digest
from spaces import SearchSpace
from spaces.registry import space_file

DRAWN = 3  # networks in the digest; each takes up to a second if it is a torch module


def digest_of_space(space: SearchSpace[Any]) -> str:
    """Return versions of the code that writes texts, and 16 hexadecimal digits for the choices and some texts.

    A comment in the space's file does not change it. It is "" for other spaces, and if a network cannot be built.
    """
    if space_file(space.address) is None:
        return ""
    digest, rng = hashlib.sha256(repr(tuple(space.gene_sizes)).encode()), np.random.default_rng(0)
    for architecture in [space.sample(rng) for _ in range(DRAWN)]:
        digest.update(space.format(architecture).encode())
        try:
            digest.update(to_measured_text(space, architecture).encode())
        except Exception:  # raised by the user's code; the search may not need networks
            return ""
    return f"{code_digest()}, torch {version('torch')}: {digest.hexdigest()[:16]}"
