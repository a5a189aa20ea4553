"""What can be searched: genotypes to sample, mutate, cross, list and compare. Needs NumPy and nothing more.

    space = spaces.get_space("nasbench201")
    cell = space.sample(numpy.random.default_rng(0))
    space.format(cell), space.encode(cell), space.architecture_key(cell)

A new space is one file here, with a subclass of SearchSpace, and one line in registry.py. One of a user's own needs
neither: docs/new-space.md.
"""

from spaces.genotype_space import Choices, GenotypeSpace
from spaces.registry import UnknownSpaceError, get_space, space_names
from spaces.space import ArchitectureError, SearchSpace
from spaces.spellings import Spellings

__all__ = [
    "ArchitectureError",
    "Choices",
    "GenotypeSpace",
    "SearchSpace",
    "Spellings",
    "UnknownSpaceError",
    "get_space",
    "space_names",
]
