"""Imports run one way: ``spaces <- converters <- studies -> nasrlm``, and ``import spaces`` stays light.

Benchmarks see these four, and neither the command line nor tests.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import nasrlm

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("spaces", "converters", "nasrlm", "studies")
MAY_IMPORT = {
    "spaces": {"spaces"},
    "converters": {"converters", "spaces"},
    "nasrlm": {"nasrlm"},
    "studies": {"studies", "spaces", "converters", "nasrlm"},
    "benchmarks": {"benchmarks", *PACKAGES},
}
FOLDERS_MAY_IMPORT: dict[str, set[str]] = {  # of nasrlm, besides its own files
    "text": set(),
    "model": {"text"},
    "engines": {"text", "model"},
    "checkpoints": {"text", "model"},
    "training": {"text", "model", "checkpoints"},
    "adaptation": {"text", "model", "checkpoints"},
}
COMMAND_LINE = {"nasrlm.__main__", "nasrlm.cli"}
FOR_STUDIES = {"nasrlm.optuna", "nasrlm.pymoo"}  # what users put into studies of their own
ONNX_TEXT_MODULES = {"onnx.parser", "onnx.printer"}


@dataclass(frozen=True)
class Import:
    """A dotted name that a module reaches for, and the line it does so on."""

    name: str
    line: int


def violations(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """What ``source``, read as the module ``module``, imports against the rules; one message each."""
    imports = list(_imports(module, source, is_package))
    return [
        *(_message(module, found) for found in imports if _crosses_layers(module, found.name)),
        *(_message(module, found) for found in imports if _crosses_folders(module, found.name)),
        *(
            f"{module}, line {found.line}: {found.name} belongs to converters/text.py alone."
            for found in imports
            if _within(found.name, ONNX_TEXT_MODULES) and module != "converters.text"
        ),
    ]


def _message(module: str, found: Import) -> str:
    return f"{module}, line {found.line}: expected imports to run downwards, got {found.name}."


def _crosses_layers(module: str, imported: str) -> bool:
    """The lazy package itself, its modules for studies and the command line see everything; nobody else sees these."""
    if _within(imported, COMMAND_LINE):
        return not _within(module, COMMAND_LINE)
    if module == "nasrlm" or _within(module, COMMAND_LINE | FOR_STUDIES):
        return False
    if _within(imported, FOR_STUDIES):
        return True
    imported_package = imported.partition(".")[0]
    return imported_package in (*MAY_IMPORT, "tests") and imported_package not in MAY_IMPORT[module.partition(".")[0]]


def _crosses_folders(module: str, imported: str) -> bool:
    """Folders of nasrlm stand one on another; files beside them, such as predictor.py, see all."""
    own, other = _folder(module), _folder(imported)
    return bool(own and other) and other not in (own, *FOLDERS_MAY_IMPORT[own])


def _folder(name: str) -> str:
    package, _, rest = name.partition(".")
    folder = rest.partition(".")[0]
    return folder if package == "nasrlm" and folder in FOLDERS_MAY_IMPORT else ""


def _within(name: str, modules: set[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for module in modules)


def _imports(module: str, source: str, is_package: bool) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        for name in _imported_names(node, module, is_package):
            yield Import(_behind_the_lazy_name(name), node.lineno)


def _imported_names(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """Dotted names of one node: imports anywhere, import_module("literal"), and onnx.parser spelled out."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = _absolute(node, module, is_package)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        case ast.Call(func=ast.Name(id=function) | ast.Attribute(attr=function), args=[ast.Constant(str(name)), *_]):
            if function in {"import_module", "__import__"}:
                yield name
        case ast.Attribute(value=ast.Name(id="onnx" | "nasrlm" as package), attr=attribute):
            yield f"{package}.{attribute}"


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The module an import statement names, with leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    levels = node.level - 1 if is_package else node.level
    parents = module.split(".")[: len(module.split(".")) - levels]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _behind_the_lazy_name(name: str) -> str:
    """``nasrlm.search`` is lazily ``studies.search``: an import through the package counts as that."""
    package, _, attribute = name.partition(".")
    if package == "nasrlm" and attribute in nasrlm._HOME:
        return f"{nasrlm._HOME[attribute]}.{attribute}"
    return name


def _module_files() -> list[Path]:
    return [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))]


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", _module_files(), ids=_module_name)
def test_imports_run_downwards(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert violations(_module_name(path), source, is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_modules_and_types(package: str) -> None:
    assert (ROOT / package / "__init__.py").is_file()
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spaces.planted", "import converters"),
        ("spaces.planted", "from nasrlm.metrics import kendall_tau"),
        ("spaces.planted", "import numpy, studies.search"),
        ("converters.planted", "import nasrlm"),
        ("converters.planted", "def late():\n    from studies import search"),
        ("converters.planted", "import importlib\nimportlib.import_module('nasrlm.table')"),
        ("nasrlm.planted", "from spaces import get_space"),
        ("nasrlm.planted", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import converters"),
        ("nasrlm.planted", "from nasrlm import search"),
        ("nasrlm.planted", "from . import get_space"),
        ("nasrlm.planted", "import nasrlm\nnasrlm.to_onnx_text"),
        ("nasrlm.planted", "from nasrlm.cli import main"),
        ("nasrlm.planted", "from .cli import main"),
        ("nasrlm.inner.planted", "from .. import cli"),
        ("studies.planted", "import nasrlm.cli"),
        ("studies.planted", "from nasrlm import cli"),
        ("nasrlm", "from nasrlm.cli import main"),
        ("studies.planted", "from nasrlm.optuna import ParetoGate"),
        ("nasrlm.planted", "import nasrlm\nnasrlm.pymoo.GatedProblem"),
        ("nasrlm.planted", "import studies.optuna_gate"),
        ("nasrlm.text.planted", "from nasrlm.model.config import ModelConfig"),
        ("nasrlm.adaptation.planted", "def late():\n    from nasrlm import train"),
        ("nasrlm.model.planted", "import nasrlm.training.run"),
        ("studies.planted", "from benchmarks.circumstances import circumstances"),
        ("benchmarks.planted", "from nasrlm.cli.output import print_table"),
        ("benchmarks.planted", "from tests.converters.numerics import LAYERS"),
        ("converters.planted", "import onnx.parser"),
        ("converters.planted", "from onnx import parser, helper"),
        ("converters.planted", "from onnx.printer import to_text"),
        ("converters.planted", "import onnx\nonnx.parser.parse_model('')"),
        ("nasrlm.cli", "import onnx\nonnx.printer.to_text(model)"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str) -> None:
    (message,) = violations(module, source)
    assert message.startswith(module + ", line ")


def test_a_relative_import_in_a_package_starts_at_the_package() -> None:
    assert violations("nasrlm", "from .cli import main", is_package=True) != []
    assert violations("spaces", "from .nasbench201 import NASBench201", is_package=True) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("spaces.honest", "import numpy as np\nfrom .space import SearchSpace\nfrom spaces import get_space"),
        ("converters.honest", "import onnx\nfrom onnx import helper\nfrom spaces.space import SearchSpace"),
        ("converters.text", "import onnx.parser\nimport onnx.printer"),
        ("nasrlm.honest", "import torch\nfrom nasrlm.objective import Objective\nfrom nasrlm import Goal"),
        ("nasrlm.training.honest", "from nasrlm.model.config import ModelConfig\nimport nasrlm.predictor"),
        ("nasrlm.predictor", "from nasrlm.checkpoints.checkpoint import Checkpoint"),
        ("nasrlm.cli", "import studies, converters, spaces\nfrom nasrlm import search"),
        ("nasrlm.cli.verbs.predict", "import studies, converters, spaces\nfrom nasrlm.cli import inputs"),
        ("nasrlm.optuna", "from studies.optuna_gate import ParetoGate"),
        ("studies.honest", "import nasrlm\nfrom converters import to_onnx_text\nimport spaces\nimport cli"),
        ("benchmarks.honest", "from benchmarks.engine import measure\nimport nasrlm, converters, studies, spaces"),
        ("studies.honest", "from nasrlm.client import x\nimport spaces_of_others"),
    ],
)
def test_honest_imports_pass(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_spaces_loads_only_numpy() -> None:
    assert third_party_loaded_by("spaces") <= {"numpy"}


def test_nasrlm_alone_loads_nothing_heavy() -> None:
    assert third_party_loaded_by("nasrlm") == set()


def third_party_loaded_by(package: str) -> set[str]:
    """Top-level packages, beyond the standard library and its own, that importing ``package`` brings in.

    Measured in a fresh interpreter, from before to after: what site-packages loads at start does not count.
    """
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        f"import {package}\n"
        "loaded = {n for n, m in sys.modules.items() if n not in before and getattr(m, '__spec__', None)}\n"
        "print(*{name.partition('.')[0] for name in loaded} - set(sys.stdlib_module_names))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split()) - {package}
