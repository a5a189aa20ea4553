"""``import nasrlm`` offers every public name, documented, and loads none of them until it is used."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import converters
import nasrlm
import spaces
from nasrlm.adaptation.pool import Pool
from nasrlm.examples import Origins
from studies.tables.adapting import Adapted

ROOT = Path(__file__).resolve().parent.parent
PYTHON_PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def in_fresh_python(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", nasrlm.__all__)
def test_a_public_name_resolves_to_its_home(name: str) -> None:
    value = getattr(nasrlm, name)
    assert value is getattr(import_module(nasrlm._HOME[name]), name)
    assert not isinstance(value, ModuleType)


@pytest.mark.parametrize("name", nasrlm.__all__)
def test_a_public_name_is_documented(name: str) -> None:
    # A dataclass without a docstring gets its signature for one; that does not count.
    documentation = inspect.getdoc(getattr(nasrlm, name)) or ""
    assert documentation
    assert not documentation.startswith(f"{name}(")


@pytest.mark.parametrize("kind", [nasrlm.Prediction, nasrlm.Examples, Origins, Pool, Adapted])
def test_dataclasses_with_arrays_are_compared_by_identity(kind: type) -> None:
    assert (kind.__eq__, kind.__hash__) == (object.__eq__, object.__hash__)


@pytest.mark.parametrize("module", [nasrlm, nasrlm.optuna, nasrlm.pymoo, converters, spaces], ids=lambda x: x.__name__)
def test_the_page_on_python_names_all_public_names(module: ModuleType) -> None:
    named = set(re.findall(r"`((?:nasrlm|converters|spaces)[\w.]*)\.(\w+)`", PYTHON_PAGE))
    same = {getattr(import_module(home), name) for home, name in named}
    missing = [name for name in module.__all__ if getattr(module, name) not in same]
    assert not missing


def test_the_lists_of_public_names_agree() -> None:
    assert sorted(nasrlm.__all__) == sorted(nasrlm._HOME)
    assert sorted([*nasrlm.__all__, *nasrlm._MODULES]) == sorted(_names_for_type_checkers())


def _names_for_type_checkers() -> list[str]:
    tree = ast.parse(Path(nasrlm.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    return [
        alias.name for statement in block.body if isinstance(statement, ast.ImportFrom) for alias in statement.names
    ]


def test_dir_lists_the_public_names() -> None:
    public = {*nasrlm.__all__, *nasrlm._MODULES}
    assert {*public, "__version__"} <= set(dir(nasrlm))
    assert not [name for name in dir(nasrlm) if name not in public and not name.startswith("__")]


@pytest.mark.parametrize("name", nasrlm._MODULES)
def test_public_modules_are_attributes_with_documented_names(name: str) -> None:
    module = getattr(nasrlm, name)
    assert module is import_module(f"nasrlm.{name}")
    assert all(inspect.getdoc(getattr(module, public)) for public in module.__all__)


def test_import_alone_is_light() -> None:
    heavy = ("torch", "onnx", "onnxruntime", "optuna", "pandas", "numpy", "transformers", "pymoo", "scipy")
    loaded = in_fresh_python(f"import sys, nasrlm; print(*(name for name in {heavy} if name in sys.modules))")
    assert loaded == ""


def test_version_is_a_version() -> None:
    assert nasrlm.__version__ == "0+source" or nasrlm.__version__[0].isdigit()


def test_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(AttributeError, match=r"expected a public name, got 'pareto'. See nasrlm.__all__."):
        nasrlm.pareto  # noqa: B018
