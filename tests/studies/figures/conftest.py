"""What the tests of figures share."""

import pytest

from studies.figures import plots


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with few pixels, which nobody looks at."""
    monkeypatch.setattr(plots, "DPI", 20)
