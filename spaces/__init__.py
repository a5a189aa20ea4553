"""Search spaces, whose architectures can be sampled, mutated, crossed, enumerated and compared. Needs only NumPy.

    space = spaces.get_space("nasbench201")
    cell = space.sample(numpy.random.default_rng(0))
    space.format(cell), space.encode(cell), space.architecture_key(cell)

A new space of this package is one file here with a subclass of SearchSpace, and one line in registry.py. For a space
in a file of your own see docs/new-space.md.
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
