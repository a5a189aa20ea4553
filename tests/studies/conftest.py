"""What the tests of studies share."""

import warnings
from collections.abc import Iterator

import optuna
import pytest
from optuna.exceptions import ExperimentalWarning


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """No study draws itself, which takes longer than the toy searches."""
    monkeypatch.setattr("studies.study.plot_study", lambda folder: ())


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna tells errors alone, and nothing of what is experimental."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield
    optuna.logging.set_verbosity(verbosity)
