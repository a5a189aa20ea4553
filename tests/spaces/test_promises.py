"""A user's own space that gives something else than every space promises is told so when it is opened."""

import pytest

from spaces import UnknownSpaceError, get_space

SPACE = """
from spaces import GenotypeSpace

class Own(GenotypeSpace):
    name = "own"
    choices = {"width": (8, 16), "depth": (1, 2)}
    def build(self, architecture): ...
"""
UNHASHABLE = """
class Unhashable(SearchSpace):
    name, objectives, gene_sizes = "own", (), (2,)
    def encode(self, architecture): return tuple(architecture)
    def _build(self, genotype): return list(genotype)
    def parse(self, notation): return [int(notation)]
    def format(self, architecture): return str(architecture[0])
    def architecture_key(self, architecture): return self.format(architecture)
"""


def opened(tmp_path, line: str):
    (tmp_path / "own.py").write_text(f"{SPACE}    {line}\n")
    return get_space(f"{tmp_path}/own.py:Own")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("name = 3", "a name, got 3"),
        ('objectives = "accuracy@here"', "a tuple of names in objectives, got 'accuracy@here'"),
        ('size = "many"', "an integer as size, got 'many'"),
        ("def sample(self, rng): pass", "an architecture from sample, got None"),
        ("def sample(self, rng): yield self.decode((0, 0))", "an architecture from sample, got <generator"),
        ("def format(self, architecture): return list(architecture)", r"a line of text from format, got \["),
        ('def format(self, architecture): return "8\\n1"', "a line of text from format, got '8"),
        ("def encode(self, architecture): return (0,)", r"a tuple with one integer per gene from encode, got \(0,\)"),
        (
            "def encode(self, architecture): return (0, 2)",
            r"a tuple with one integer per gene from encode, got \(0, 2\)",
        ),
        ("def architecture_key(self, architecture): pass", "a line of text from architecture_key, got None"),
        (
            "def architecture_key(self, _, keys=iter('ab')): return next(keys)",
            "a single architecture_key .* 'a' and 'b'",
        ),
        (
            "def parse(self, notation): return self.decode((0, 0))",
            r"a result equal to .* from parse of '\[16, 2\]', got ",
        ),
        ("def parse(self, notation): pass", "a result equal to .* from parse of .*, got None"),
        ("def mutate(self, architecture, rng): pass", "an architecture from mutate, got None"),
        (
            "def mutate(self, architecture, rng): return architecture",
            "an architecture other than the parent ",
        ),
        ("def crossover(self, first, second, rng): return (8, 1)", r"an architecture from crossover, got \(8, 1\)"),
        ("def encode(self, architecture): return (0, 0)", r"a result equal to .* from decode of \(0, 0\), got Choices"),
    ],
)
def test_a_broken_promise_is_told_when_the_space_is_opened(line, message, tmp_path):
    with pytest.raises(UnknownSpaceError, match=f"own\\.py:Own: expected {message}"):
        opened(tmp_path, line)


def test_a_notation_that_is_read_wrong_of_some_architectures_alone_is_told(tmp_path):
    line = "def parse(self, notation): return self.decode((0, 0) if '8' in notation else (1, int('2' in notation)))"
    with pytest.raises(UnknownSpaceError, match=r"values=\(8, 2\)\) from parse of '\[8, 2\]', got Choi.*\(8, 1\)"):
        opened(tmp_path, line)


def test_architectures_that_cannot_be_hashed_are_told(tmp_path):
    (tmp_path / "own.py").write_text(f"from spaces import SearchSpace\n{UNHASHABLE}")
    with pytest.raises(UnknownSpaceError, match=r"expected architectures that can be hashed, .* got \[[01]\]"):
        get_space(f"{tmp_path}/own.py:Unhashable")


def test_sizes_of_genes_are_integers(tmp_path):
    (tmp_path / "own.py").write_text(f"from spaces import SearchSpace\n{UNHASHABLE.replace('(2,)', '(2.0,)')}")
    with pytest.raises(UnknownSpaceError, match=r"expected a tuple of positive integers in gene_sizes, got \(2\.0,\)"):
        get_space(f"{tmp_path}/own.py:Unhashable")


def test_a_method_that_fails_does_so_where_it_is_needed(tmp_path):
    space = opened(tmp_path, "def sample(self, rng): raise OSError('no data')")
    with pytest.raises(OSError, match="no data"):
        space.sample(None)


def test_a_class_that_lacks_its_data_is_named(tmp_path):
    with pytest.raises(
        UnknownSpaceError, match=r"own\.py:Own: expected a class that can be created, got FileNotFoundError"
    ):
        opened(tmp_path, "def __init__(self): open('/no/such/data.csv')")
