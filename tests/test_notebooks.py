"""Notebooks run from top to bottom; needs the extra ``notebooks``."""

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent.parent)}}).execute()


def test_notebooks_are_committed_without_outputs() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        assert '"output_type"' not in path.read_text(), f"{path.name}: expected no outputs. Clear them."
