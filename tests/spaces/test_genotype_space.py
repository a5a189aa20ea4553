"""A space of named choices keeps the promises of every space, and refuses choices that could not."""

import pickle
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from spaces import ArchitectureError, Choices, GenotypeSpace, UnknownSpaceError, get_space
from tests.spaces.contract import SpaceContract

CHOICES = {"depth": (1, 2, 3), "rate": (0.5, 1.5), "activation": ("relu", "silu", "größer"), "fixed": ("one",)}

SPACE_WITHOUT_CHOICES = """
from spaces import GenotypeSpace

class Bare(GenotypeSpace):
    name = "bare"
    def build(self, architecture): ...

class Unbuilt(GenotypeSpace):
    name = "unbuilt"
    choices = {"depth": (1, 2)}
"""


class Toy(GenotypeSpace):
    name = "toy"
    objectives = ("accuracy@here",)
    choices = CHOICES

    def build(self, architecture):
        raise NotImplementedError


class TestToy(SpaceContract):
    space_name = "toy"
    malformed: ClassVar = (*SpaceContract.malformed, "[" * 10_000, '[1, 0.5, "relu"]', '[true, 0.5, "relu", "one"]')

    @pytest.fixture
    def space(self):
        return Toy()


def test_an_architecture_is_its_choices_by_name_and_in_order():
    architecture = Toy().parse('[3, 0.5, "größer", "one"]')
    assert (architecture["depth"], architecture["activation"]) == (3, "größer")
    depth, rate, *others = architecture
    assert (depth, rate, others, len(architecture)) == (3, 0.5, ["größer", "one"], 4)
    assert [architecture[0], architecture[np.int64(1)], architecture[-1], architecture[1:3]] == [
        *(3, 0.5, "one", (0.5, "größer"))
    ]
    with pytest.raises(IndexError):
        architecture[4]
    assert architecture == Choices(tuple(CHOICES), (3, 0.5, "größer", "one"))
    assert pickle.loads(pickle.dumps(architecture)) == architecture
    with pytest.raises(KeyError, match="expected one of the genes depth, rate, activation, fixed, got 'width'"):
        architecture["width"]


def test_a_notation_has_one_spelling():
    assert Toy().format(Toy().parse(' [ 3.0,0.5,"gr\\u00f6\\u00dfer","one"]')) == '[3, 0.5, "größer", "one"]'
    assert Toy().format(Choices(tuple(CHOICES), (3.0, 0.5, "größer", "one"))) == '[3, 0.5, "größer", "one"]'


def test_a_refused_notation_names_the_gene():
    with pytest.raises(
        ArchitectureError, match=r"toy: expected depth to be one of 1, 2, 3, got 4\. See Toy\.choices\."
    ):
        Toy().parse('[4, 0.5, "relu", "one"]')


@pytest.mark.parametrize(
    "choices",
    [(), (1, 1), (1, 1.0), "relu", (True,), ((1, 2),), (float("nan"),), (None, 1), {1, 2}, ([1], [2]), 3, iter((1, 2))],
)
def test_choices_that_have_no_notation_are_refused(choices):
    with pytest.raises(ValueError, match=r"^Wrong\.choices: expected .* for depth, got"):
        type("Wrong", (GenotypeSpace,), {"choices": {"depth": choices}})


def test_an_unfinished_space_is_told_what_is_missing(tmp_path: Path):
    (tmp_path / "own.py").write_text(SPACE_WITHOUT_CHOICES)
    with pytest.raises(UnknownSpaceError, match="got no attribute choices, such as"):
        get_space(f"{tmp_path}/own.py:Bare")
    with pytest.raises(UnknownSpaceError, match=r"abstract method '?build"):
        get_space(f"{tmp_path}/own.py:Unbuilt")


def test_choices_are_named():
    with pytest.raises(ValueError, match=r"^Wrong\.choices: expected a dict of genes, got \[\(1, 2\)\]"):
        type("Wrong", (GenotypeSpace,), {"choices": [(1, 2)]})


@pytest.mark.parametrize("method", ["encode", "format", "architecture_key"])
@pytest.mark.parametrize(
    ("architecture", "message"),
    [
        ((0, 0, 0, 0), r"an architecture, .* got \(0, 0, 0, 0\)"),
        (Choices(("depth",), (1,)), r"an architecture, .* got {'depth': 1}"),
        (Choices(tuple(CHOICES), (1, 0.5)), r"an architecture, .* got {'depth': 1, 'rate': 0\.5}"),
        (Choices(tuple(CHOICES)[::-1], (1, 0.5, "relu", "one")), r"an architecture, .* got {'fixed': 1, 'activation'"),
        (Choices(tuple(CHOICES), (4, 0.5, "relu", "one")), "depth to be one of 1, 2, 3, got 4"),
    ],
)
def test_what_is_no_architecture_is_refused(method, architecture, message):
    with pytest.raises(ArchitectureError, match=rf"toy: expected {message}.* See Toy\.choices\."):
        getattr(Toy(), method)(architecture)
