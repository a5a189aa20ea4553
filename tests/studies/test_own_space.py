"""A search tells when a user's space builds networks at random, or gives different networks one key."""

import itertools
import re
from pathlib import Path
from typing import ClassVar

import pytest

import nasrlm
from converters.builder import GraphBuilder
from converters.graph import Graph
from spaces import ArchitectureError, Choices, GenotypeSpace, Spellings, UnknownSpaceError, get_space
from spaces.space import Genotype
from studies.own_space import network_doubt

ONE_KEY = r"own: expected different keys for different networks, got one architecture_key for \[.*\] and \[.*\]: only"


class Own(GenotypeSpace):
    name = "own"
    choices: ClassVar = {"width": (8, 16), "depth": (1, 2, 3)}

    def build(self, architecture: Choices) -> Graph:
        width, depth = architecture
        g = GraphBuilder((1, 3, 8, 8))
        x = g.input
        for _ in range(depth):
            x = g.relu(g.conv(x, width, kernel=3))
        return g.build(x)


class WithoutDepth(Own):
    """Its key lacks a gene on which the network depends."""

    def architecture_key(self, architecture: Choices) -> str:
        return str(architecture["width"])


class AtRandom(Own):
    """Every network that it builds is another one."""

    widths = itertools.count(1)

    def build(self, architecture: Choices) -> Graph:
        return super().build(Choices(architecture.names, (next(self.widths), 1)))


class Unused(Own):
    """Of width 8 there is a single network, and width 16 has no depth 3: none of this is a mistake."""

    def _build(self, genotype: Genotype) -> Choices:
        if genotype == (1, 2):
            raise ArchitectureError("own: expected a shallower network.")
        return super()._build(genotype)

    def build(self, architecture: Choices) -> Graph:
        return super().build(Choices(architecture.names, (8, 1)) if architecture["width"] == 8 else architecture)

    def architecture_key(self, architecture: Choices) -> str:
        return "8" if architecture["width"] == 8 else self.format(architecture)


class Unfinished(Own):
    def build(self, architecture: Choices) -> Graph:
        raise MemoryError


def test_one_key_of_different_networks_is_told() -> None:
    assert re.match(ONE_KEY, network_doubt(WithoutDepth()))


def test_networks_built_at_random_are_told() -> None:
    assert network_doubt(AtRandom()).startswith("own: expected the same network each time from build, got two for [")


@pytest.mark.parametrize(
    "space", [Own(), Unused(), Unfinished(), Spellings(WithoutDepth()), get_space("nasbench201")], ids=repr
)
def test_no_other_space_is_doubted(space: GenotypeSpace) -> None:
    assert network_doubt(space) == ""


def test_a_file_cannot_name_its_space_like_a_published_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from spaces import GenotypeSpace\n\n\nclass Mine(GenotypeSpace):\n    name = 'nasbench201'\n"
        "    choices = {'width': (8, 16)}\n    def build(self, architecture): ...\n"
    )
    space = get_space(f"{tmp_path / 'mine.py'}:Mine")
    config = nasrlm.SearchConfig("nasbench201", ["min:latency_ms@here"], trials=2, population_size=2)
    with pytest.raises(UnknownSpaceError, match="space Mine: expected a unique name, got nasbench201"):
        nasrlm.search(config, space, lambda _: {"latency_ms@here": 1.0}, tmp_path / "out")
    with pytest.raises(UnknownSpaceError, match="space Mine: expected a unique name, got nasbench201"):
        nasrlm.optuna.ParetoGate(space, ["max:accuracy@cifar10", "min:latency_ms@here"])


def test_a_study_and_a_gate_tell_it(tmp_path: Path, without_figures: None) -> None:
    config = nasrlm.SearchConfig("own", ["min:latency_ms@here"], trials=2, population_size=2)
    with pytest.warns(UserWarning, match=ONE_KEY):
        nasrlm.search(config, WithoutDepth(), lambda _: {"latency_ms@here": 1.0}, tmp_path)
    with pytest.warns(UserWarning, match=ONE_KEY):
        nasrlm.optuna.ParetoGate(WithoutDepth(), ["max:accuracy@cifar10", "min:latency_ms@here"])
