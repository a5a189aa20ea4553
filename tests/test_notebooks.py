"""Notebooks run from top to bottom, with small settings: `make notebooks`."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
TIMEOUT = 1200  # seconds for a cell; the longest takes 20 on a core of its own


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("NASRLM_SMALL", "1")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    notebook = nbformat.read(path, as_version=4)
    root = str(path.parent.parent)
    nbclient.NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": root}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), f"{path.name}: expected a plot, got none."


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs"), f"{path.name}: expected no outputs. Clear them."
        assert cell.get("execution_count") is None, f"{path.name}: expected no execution counts. Clear them."


def test_notebooks_are_numbered_from_one() -> None:
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{number:02}_" for number in range(1, len(NOTEBOOKS) + 1)]
    assert NOTEBOOKS
