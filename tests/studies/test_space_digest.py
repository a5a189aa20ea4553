"""A study of a user's own space does not go on once its networks are others."""

import json
import re
from pathlib import Path

import pytest

import nasrlm
from spaces import get_space
from studies.folder import StudyError
from studies.space_digest import digest_of_space

SPACE_FILE = """
from converters.builder import GraphBuilder
from spaces import GenotypeSpace


class Mine(GenotypeSpace):
    name = "mine"
    choices = {"width": (8, 16, 24), "depth": (1, 2, 3, 4), "activation": ("relu", "silu")}

    def build(self, architecture):
        width, depth, activation = architecture
        g = GraphBuilder((1, 3, 8, 8))
        x = g.input
        for _ in range(depth):
            x = g.conv(x, width, kernel=3)
            x = g.relu(x) if activation == "relu" else g.silu(x)
        return g.build(g.linear(g.flatten(g.global_average_pool(x)), 10))
"""
CHANGES = [("kernel=3", "kernel=5"), ("(8, 16, 24)", "(8, 16, 24, 32)"), ("relu(x) if", "silu(x) if")]

pytestmark = pytest.mark.usefixtures("without_figures")


def opened(folder: Path, text: str) -> str:
    """The address of a space in a file that this process has not imported yet."""
    folder.mkdir()
    (folder / "mine.py").write_text(text)
    return f"{folder / 'mine.py'}:Mine"


def test_a_comment_changes_nothing_and_others_have_no_digest(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "a", SPACE_FILE), opened(tmp_path / "b", f"# mine\n{SPACE_FILE}")
    assert re.fullmatch(r"\w{16}, torch [\w.+]+: \w{16}", digest_of_space(get_space(first)))
    assert digest_of_space(get_space(first)) == digest_of_space(get_space(second))
    assert digest_of_space(get_space("nasbench201")) == ""


@pytest.mark.parametrize("change", CHANGES)
def test_a_study_goes_on_with_the_space_it_was_begun_with(change: tuple[str, str], tmp_path: Path) -> None:
    before, after = opened(tmp_path / "a", SPACE_FILE), opened(tmp_path / "b", SPACE_FILE.replace(*change))
    for address, trials in ((before, 6), (before, 8)):
        config = nasrlm.SearchConfig("mine", ["min:latency_ms@here"], trials=trials, population_size=4)
        nasrlm.search(config, address, lambda name: {"latency_ms@here": 1.0 + len(name)}, tmp_path / "out", resume=True)
    with pytest.raises(
        StudyError, match=r"expected the space that the study was started with, .*: \w{16}, got .*\. Undo"
    ):
        nasrlm.search(config, after, lambda _: {"latency_ms@here": 1.0}, tmp_path / "out", resume=True)


def test_other_writers_of_texts_say_nothing_of_a_space(tmp_path: Path) -> None:
    before, after = opened(tmp_path / "a", SPACE_FILE), opened(tmp_path / "b", SPACE_FILE.replace(*CHANGES[0]))
    config = nasrlm.SearchConfig("mine", ["min:latency_ms@here"], trials=6, population_size=4)
    nasrlm.search(config, before, lambda _: {"latency_ms@here": 1.0}, tmp_path / "out")
    study = json.loads((tmp_path / "out/study.json").read_text())
    study["config"]["space_sha256"] = study["config"]["space_sha256"].replace(", torch ", ", torch 1")
    (tmp_path / "out/study.json").write_text(json.dumps(study))
    nasrlm.search(config, after, lambda _: {"latency_ms@here": 1.0}, tmp_path / "out", resume=True)


def test_a_space_that_builds_nothing_has_no_digest(tmp_path: Path) -> None:
    broken = SPACE_FILE.replace("width, depth, activation = architecture", "raise MemoryError")
    assert digest_of_space(get_space(opened(tmp_path / "a", broken))) == ""
