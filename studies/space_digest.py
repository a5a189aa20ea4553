"""Whether a user's own space is as it was when a study was begun."""

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np

from converters import to_measured_text
from spaces import SearchSpace
from spaces.registry import space_file

DRAWN = 3  # networks that are looked at; a torch module takes up to a second each


def digest_of_space(space: SearchSpace[Any]) -> str:
    """16 hexadecimal digits of the choices of a user's own space and the texts of a few networks; "" of other spaces.

    A comment in its file changes nothing. A network that it does not build counts by its notation.
    """
    if space_file(space.address) is None:
        return ""
    digest, rng = hashlib.sha256(repr(tuple(space.gene_sizes)).encode()), np.random.default_rng(0)
    for architecture in [space.sample(rng) for _ in range(DRAWN)]:
        digest.update(space.format(architecture).encode())
        with suppress(Exception):
            digest.update(to_measured_text(space, architecture).encode())
    return digest.hexdigest()[:16]
