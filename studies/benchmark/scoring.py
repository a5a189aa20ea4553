"""How the methods of ``nasrlm benchmark`` rank test rows: by numbers of their networks, or by texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nasrlm.arrays import FloatArray
from studies.benchmark import methods as numeric
from studies.benchmark.graph_network import gnn
from studies.benchmark.language_models import LanguageModels
from studies.benchmark.task import Task

# Methods by name that give (test rows,) scores from graphs, genotypes or counts.
FROM_NUMBERS: dict[str, Callable[[Task], FloatArray]] = {
    "params": numeric.params,
    "macs": numeric.macs,
    "lightgbm": numeric.lightgbm,
    "forest": numeric.forest,
    "lookup": numeric.lookup,
    "process": numeric.process,
    "process-and-trees": numeric.process_and_trees,
    "sources": numeric.sources_alone,
    "transfer": numeric.transferred,
    "gnn": gnn,
}
# Methods by name that give (test rows,) scores by a language model.
FROM_TEXTS: dict[str, Callable[[LanguageModels, Task], FloatArray]] = {
    "rlm": LanguageModels.scratch,
    "rlm-mse": LanguageModels.mse,
    "rlm-ensemble": LanguageModels.ensemble,
    "rlm-taught": LanguageModels.taught,
    "rlm-pretrained": LanguageModels.pretrained,
    "rlm-adapted": LanguageModels.adapted,
    "rlm-adapted-active": LanguageModels.adapted_by_choice,
}


def scores_of(method: str, models: LanguageModels, task: Task) -> FloatArray:
    """Return the (test rows,) scores of a task.

    Raises:
        ValueError: the scores have another shape or are not finite.
    """
    scores = FROM_NUMBERS[method](task) if method in FROM_NUMBERS else FROM_TEXTS[method](models, task)
    if scores.shape != task.test.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"method {method}: expected a finite score for each of {len(task.test)} test rows, got shape "
            f"{scores.shape}, {np.isfinite(scores).sum()} of them finite. Leave it out of --methods, or fix it."
        )
    return scores
