"""Verbs are imported when they are run; what stands for them until then says the same."""

import json
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import pytest

import nasrlm
from nasrlm.cli import main, verbs
from nasrlm.cli.verbs import VERBS, load_verb
from tests.nasrlm.cli.test_cli import ARCHITECTURE, SPACE

HEAVY = {
    *("crepes", "matplotlib", "moocore", "numba", "onnxruntime", "optuna", "pandas", "plotly", "pymoo", "scipy"),
    *("sklearn", "sqlalchemy", "torch", "transformers"),
}
SCRIPT = """
import json, sys
from nasrlm.cli import main
try:
    main()
finally:
    json.dump(sorted(sys.modules), sys.stderr)
"""


HELP_OF_ALL = f"""
import contextlib, io, json, sys
from nasrlm.cli import main
found, had = {{}}, set()
for name in sys.argv[1:]:
    sys.argv = ["nasrlm", name, "--help"]
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.suppress(SystemExit):
        main()
    assert "Usage: nasrlm " + name in told.getvalue(), name
    now = set(sys.modules) & {HEAVY}
    found[name], had = sorted(now - had), now
json.dump(found, sys.stdout)
"""


def imported_by(*words: str, status: int = 0) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, bool(done.stdout)) == (status, status == 0), done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_imports_no_module_of_a_verb() -> None:
    found = imported_by("--help")
    assert found & (HEAVY | {"onnx", "pyarrow", "pydantic", "converters", "studies"}) == set()
    modules = {name for name in found if name.startswith("nasrlm.")}
    assert modules == {"nasrlm.cli", "nasrlm.cli.users_code", "nasrlm.cli.verbs"}


def test_the_help_of_a_verb_imports_nothing_heavy() -> None:
    """Of all verbs in one process, since starting one takes as long as a verb's imports."""
    done = subprocess.run([sys.executable, "-c", HELP_OF_ALL, *VERBS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [] for name in VERBS}


def test_nothing_heavy_is_imported_to_refuse_an_option() -> None:
    assert imported_by("search", "--out", "study", "--trials", "0", status=2) & HEAVY == set()


@pytest.mark.parametrize(
    "words",
    [("convert", *SPACE, ARCHITECTURE), ("spaces",), ("sample", *SPACE), ("stats", *SPACE, ARCHITECTURE)],
    ids=lambda words: words[0],
)
def test_a_verb_without_a_model_or_a_table_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    assert imported_by(*words) & HEAVY == set()


def test_nothing_heavy_is_imported_to_predict(checkpoint_folder: Path) -> None:
    words = ("predict", *SPACE, ARCHITECTURE, "--checkpoint", str(checkpoint_folder))
    assert imported_by(*words) & HEAVY == {"torch", "onnxruntime"}


@pytest.mark.parametrize("name", VERBS)
def test_help_says_of_a_verb_what_its_own_help_begins_with(name: str) -> None:
    assert " ".join(load_verb(name).help.split("\n\n")[0].split()) == VERBS[name]


def test_help_names_the_panel_above_its_verbs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["nasrlm", "--help"])
    with pytest.raises(SystemExit):
        main()
    lines = [line.strip("│╭╮─ ") for line in capsys.readouterr().out.splitlines()]
    found: dict[str, list[str]] = {}
    for line in lines:
        if line in verbs.PANELS:
            found[line] = []
        elif found and (word := line.partition(" ")[0]) in VERBS:
            list(found.values())[-1].append(word)
    assert found == {panel: list(of_panel) for panel, of_panel in verbs.PANELS.items()}


@pytest.mark.parametrize(
    ("option", "panel"),
    [("--trials", None), ("--evaluator", "Real evaluations"), ("--gate", "How the model guides real evaluations")],
)
def test_the_help_of_search_has_panels(option: str, panel: str | None) -> None:
    (found,) = (each for each in load_verb("search").params if option in each.opts)
    assert found.rich_help_panel == panel


def test_every_verb_is_known() -> None:
    assert {module.name.rstrip("_") for module in iter_modules(verbs.__path__)} == set(VERBS)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nasrlm", "--version"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert (exit_.value.code, capsys.readouterr().out) == (0, f"nasrlm {nasrlm.__version__}\n")


def test_python_runs_the_package() -> None:
    words = [sys.executable, "-m", "nasrlm", "spaces", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "nasbench201" in {space["name"] for space in json.loads(done.stdout)}
