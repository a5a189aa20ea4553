"""What a user's code prints stays off stdout, and what it raises is told in one line."""

import json
import runpy
import site
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from converters import module_to_onnx_text
from nasrlm.adaptation.pool import Pool, make_pool
from nasrlm.cli import users_code
from nasrlm.cli.networks import users_module
from nasrlm.cli.output import results_alone, say
from tests.nasrlm.conftest import CommandLine

LOUD = """
from converters.builder import GraphBuilder
from spaces import GenotypeSpace

print("imported")

class Loud(GenotypeSpace):
    name = "loud"
    choices = {"width": (16,)}

    def build(self, architecture):
        print("built")
        g = GraphBuilder((1, 3, 4, 4))
        return g.build(g.conv(g.input, architecture["width"], kernel=1))
"""


def test_what_code_and_its_programs_print_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with results_alone():
        print("a line")
        say("an answer")
        sys.stderr.flush()
        subprocess.run([sys.executable, "-c", "print('epoch 1')"], check=True)
    print("another")
    assert capfd.readouterr() == ("an answer\nanother\n", "a line\nepoch 1\n")


def test_a_space_that_prints_leaves_one_document(nasrlm: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "loud.py"
    path.write_text(LOUD)
    finished = nasrlm("stats", "--space", f"{path}:Loud", "[16]", "--json")
    assert json.loads(finished.stdout)["params"] == 16 * 3
    assert finished.stderr.splitlines() == ["imported", "built"]
    assert nasrlm("sample", "--space", f"{path}:Loud").stdout == "[16]\n"


def test_what_tells_most_of_a_space_is_asked_by_its_address(
    nasrlm: CommandLine, tmp_path: Path, checkpoint_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(*given: Any, space: str, **options: Any) -> Pool:
        asked.append(space)
        return make_pool(*given, space=space, **options)

    monkeypatch.setattr("studies.tables.choosing.make_pool", noted)
    (tmp_path / "loud.py").write_text(LOUD)
    address = f"{tmp_path / 'loud.py'}:Loud"
    words = ("--choose", "active", "--pool", 1, "--checkpoint", checkpoint_folder)
    assert nasrlm("sample", "--space", address, *words).stdout == "[16]\n"
    assert asked == [address]


def test_results_want_an_open_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(ValueError, match="stdout: expected an open stream"), results_alone():
        pass


def test_packages_are_not_the_users_code_wherever_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library.py").write_text("raise RuntimeError('no room')")
    (tmp_path / "ours").symlink_to(Path(users_code.__file__).parent)
    spec = ModuleSpec("ours", None, origin=str(tmp_path / "ours" / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    monkeypatch.setattr(site, "USER_SITE", str(tmp_path))
    imported = runpy.run_path(users_code.__file__)
    assert imported["is_ours"](users_code.__file__)
    with pytest.raises(RuntimeError) as raised:
        runpy.run_path(str(tmp_path / "library.py"))
    assert raised.tb.tb_next
    assert imported["describe_error"](raised.value.with_traceback(raised.tb.tb_next)) is None  # without this test


def test_a_project_in_its_own_environment_is_the_users_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "space.py").write_text("raise KeyError('boom')")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    imported = runpy.run_path(users_code.__file__)
    with pytest.raises(KeyError) as raised:
        runpy.run_path(str(tmp_path / "space.py"))
    assert imported["describe_error"](raised.value) == f"KeyError: 'boom' ({tmp_path / 'space.py'}:1)"


@pytest.fixture
def users_nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "users_nets.py").write_text(
        "from torch import nn\n"
        "def net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(12, 2))\n"
        "def other():\n    return 3\n"
        "def needs(size):\n    return nn.Linear(size, 2)\n"
        "def lacks():\n    return {}['width']\n"
        "def refuses():\n    raise ValueError('no such width')\n"
    )
    monkeypatch.chdir(tmp_path)
    yield "users_nets"
    sys.modules.pop("users_nets", None)


def test_a_function_that_returns_a_module(users_nets: str) -> None:
    assert "nn.LinearBias" in module_to_onnx_text(users_module(f"{users_nets}:net"), (1, 3, 2, 2))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "my_nets.py:net",
            "expected a module my_nets.py, got none. Write my_nets:net and run in the file's folder",
        ),
        ("no_such_package.nets:net", "expected a module no_such_package.nets, got none. Is it on PYTHONPATH"),
        ("users_nets:missing", "expected a function missing in .*users_nets.py, got None"),
        ("users_nets:other", "expected a function .*that .*returns a torch.nn.Module, got one that returns int"),
        (
            "users_nets:needs",
            "expected a function that takes no arguments and returns a torch.nn.Module, got .*missing 1 required",
        ),
        (
            "users_nets:lacks",
            r"expected a function that takes no arguments .*, got KeyError: 'width' \(.*users_nets.py:9\)",
        ),
        (
            "users_nets:refuses",
            r"expected a function that takes no arguments .*, got no such width \(.*users_nets.py:11\)",
        ),
    ],
)
def test_functions_that_make_no_module_are_refused(users_nets: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^module {name}: {message}"):
        users_module(name)
