"""What all tests share: neither the terminal, the network, the cores, a launcher nor a busy machine decides."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings
from tqdm import tqdm

OF_TERMINALS = ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH")
OF_TERMINALS += ("TTY_COMPATIBLE", "TTY_INTERACTIVE")
OF_LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")  # of torch.distributed.run

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported
os.environ["HF_HUB_OFFLINE"] = "1"  # here: huggingface_hub reads it when it is imported
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no failure


def pytest_sessionstart() -> None:
    """Forget what rich, typer and torch would go by; pytest has chosen its own colours by now."""
    for name in (*OF_TERMINALS, *OF_LAUNCHERS):
        os.environ.pop(name, None)


def pytest_collection_finish() -> None:
    """Exempt what all tests have in common from garbage collections, which take a tenth of the time otherwise."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_bars() -> None:
    """Forget bars of runs that failed, below which others would be drawn until Python happens to collect them."""
    tqdm._instances.clear()
