"""Guided searches of the toy space."""

from pathlib import Path
from typing import Any

from studies.config import SearchConfig
from studies.guided import guided_search
from studies.report import StudyResult
from tests.studies.scenes import ToyPredictor, ToyResults, ToySpace, toy_config


def guided_config(*, trials: int = 14, guide: dict[str, Any] | None = None, **changes: object) -> SearchConfig:
    settings = {"batch_size": 4, "generations": 3, "samples": 8, **(guide or {})}
    return toy_config(**{"trials": trials, "guide": settings, "evaluator": "function", **changes})


def run(config: SearchConfig, out: Path, evaluator: Any = None, **options: Any) -> StudyResult:
    space = options.pop("space", None) or ToySpace()
    predictor = options.pop("predictor", None) or ToyPredictor()
    evaluator = evaluator or ToyResults(config.objectives)
    return guided_search(config, space, evaluator, predictor, out, to_text=space.format, **options)
