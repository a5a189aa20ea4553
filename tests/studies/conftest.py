"""What the tests of studies share."""

import pytest


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No study draws itself, which takes longer than the toy searches."""
    monkeypatch.setattr("studies.study.plot_study", lambda folder: ())
