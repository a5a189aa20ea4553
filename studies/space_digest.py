"""Whether a user's own space is as it was when a study was begun."""

import hashlib
from importlib.metadata import version
from typing import Any

import numpy as np

from converters import to_measured_text
from converters.version import code_digest
from spaces import SearchSpace
from spaces.registry import space_file

DRAWN = 3  # networks that are looked at; a torch module takes up to a second each


def digest_of_space(space: SearchSpace[Any]) -> str:
    """What writes texts, and 16 hexadecimal digits of a user's own space: its choices, and the texts of a few networks.

    A comment in its file changes nothing. "" of other spaces, and where a network cannot be built.
    """
    if space_file(space.address) is None:
        return ""
    digest, rng = hashlib.sha256(repr(tuple(space.gene_sizes)).encode()), np.random.default_rng(0)
    for architecture in [space.sample(rng) for _ in range(DRAWN)]:
        digest.update(space.format(architecture).encode())
        try:
            digest.update(to_measured_text(space, architecture).encode())
        except Exception:  # the user's: the search may do without networks
            return ""
    return f"{code_digest()}, torch {version('torch')}: {digest.hexdigest()[:16]}"
