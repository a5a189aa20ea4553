"""What the tests of studies share."""

import pytest


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No study draws itself, which takes longer than the toy searches."""
    for module in ("guided", "search"):
        monkeypatch.setattr(f"studies.{module}.plot_study", lambda folder: ())
