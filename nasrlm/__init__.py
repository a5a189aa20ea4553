"""nasrlm: predict accuracy and latency per device from architectures as ONNX text.

The public names are loaded on first use, so that ``import nasrlm`` takes milliseconds:

    >>> import nasrlm
    >>> nasrlm.Objective.parse("latency_ms@pixel3").unit
    'ms'

``nasrlm.optuna`` and ``nasrlm.pymoo`` bring the model into studies of your own; they too are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

# Type checkers cannot follow __getattr__; tests/test_public_names.py checks that this block and _HOME agree.
if TYPE_CHECKING:
    from converters import to_measured_text, to_model, to_onnx_text
    from nasrlm import optuna as optuna
    from nasrlm import pymoo as pymoo
    from nasrlm.adaptation.adapt import adapt
    from nasrlm.adaptation.pool import make_pool
    from nasrlm.adaptation.refine import refine
    from nasrlm.checkpoints.checkpoint import Checkpoint
    from nasrlm.examples import Examples
    from nasrlm.metrics import kendall_tau
    from nasrlm.model.config import ModelConfig
    from nasrlm.objective import Goal, Objective
    from nasrlm.prediction import Prediction
    from nasrlm.predictor import Predictor
    from nasrlm.training.config import TrainConfig
    from nasrlm.training.train import train
    from spaces import get_space, space_names
    from studies.config import SearchConfig
    from studies.search import search
    from studies.search_with_model import search_with_model
    from studies.tables.adapt_config import AdaptConfig
    from studies.tables.adapting import adapt_to_tables
    from studies.tables.training_examples import training_examples

__all__ = [
    "AdaptConfig",
    "Checkpoint",
    "Examples",
    "Goal",
    "ModelConfig",
    "Objective",
    "Prediction",
    "Predictor",
    "SearchConfig",
    "TrainConfig",
    "adapt",
    "adapt_to_tables",
    "get_space",
    "kendall_tau",
    "make_pool",
    "refine",
    "search",
    "search_with_model",
    "space_names",
    "to_measured_text",
    "to_model",
    "to_onnx_text",
    "train",
    "training_examples",
]

# The module of each public name.
_HOME = {
    "AdaptConfig": "studies.tables.adapt_config",
    "Checkpoint": "nasrlm.checkpoints.checkpoint",
    "Examples": "nasrlm.examples",
    "Goal": "nasrlm.objective",
    "ModelConfig": "nasrlm.model.config",
    "Objective": "nasrlm.objective",
    "Prediction": "nasrlm.prediction",
    "Predictor": "nasrlm.predictor",
    "SearchConfig": "studies.config",
    "TrainConfig": "nasrlm.training.config",
    "adapt": "nasrlm.adaptation.adapt",
    "adapt_to_tables": "studies.tables.adapting",
    "get_space": "spaces",
    "kendall_tau": "nasrlm.metrics",
    "make_pool": "nasrlm.adaptation.pool",
    "refine": "nasrlm.adaptation.refine",
    "search": "studies.search",
    "search_with_model": "studies.search_with_model",
    "space_names": "spaces",
    "to_measured_text": "converters",
    "to_model": "converters",
    "to_onnx_text": "converters",
    "train": "nasrlm.training.train",
    "training_examples": "studies.tables.training_examples",
}

# Public modules for users' own studies; like the command line, they may import all others.
_MODULES = ("optuna", "pymoo")


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = _installed_version()
    elif name in _MODULES:
        value = import_module(f"nasrlm.{name}")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"nasrlm: expected a public name, got {name!r}. See nasrlm.__all__.")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*dunders, *__all__, *_MODULES, "__version__"})


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # here: it would triple the import time

    try:
        return version("nasrlm")
    except PackageNotFoundError:
        return "0+source"  # a checkout on sys.path, never installed
