"""Verbs are imported when they are run; what stands for them until then says the same."""

import json
import subprocess
import sys
from importlib import import_module

import pytest
import typer

from nasrlm.cli.verbs import VERBS, load_verb

HEAVY = {"converters.stream", "matplotlib", "onnxruntime", "optuna", "pandas", "scipy", "sklearn", "torch"}


def test_python_runs_the_package() -> None:
    words = [sys.executable, "-m", "nasrlm", "spaces", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "nasbench201" in {space["name"] for space in json.loads(done.stdout)}


def loaded_by(script: str) -> set[str]:
    """Heavy modules that a fresh Python has imported after ``script``."""
    script = f"import sys\n{script}\nprint('loaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return HEAVY & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", VERBS)
def test_help_says_of_a_verb_what_its_own_help_begins_with(name: str) -> None:
    assert " ".join(load_verb(name).help.split("\n\n")[0].split()) == VERBS[name][1]


def test_every_verb_of_a_module_is_known() -> None:
    app = typer.Typer()
    for module in dict.fromkeys(module for module, _ in VERBS.values()):
        import_module(f"nasrlm.cli.{module}").register(app)
    assert list(typer.main.get_group(app).commands) == list(VERBS)


def test_help_loads_no_verb() -> None:
    run = "from nasrlm.cli import main\nsys.argv = ['nasrlm', '--help']\ntry:\n    main()\nexcept SystemExit:\n    pass"
    assert loaded_by(run) == set()


def test_verbs_about_networks_do_without_a_model() -> None:
    run = "from nasrlm.cli.verbs import load_verb\nload_verb('convert')"
    assert not loaded_by(run) & {"matplotlib", "optuna", "scipy", "sklearn", "torch"}
