"""The methods of ``nasrlm benchmark``: how they rank test rows, and what they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nasrlm.arrays import FloatArray
from studies.benchmark import methods as numeric
from studies.benchmark.graph_network import gnn
from studies.benchmark.language_models import LanguageModels
from studies.benchmark.task import Task


@dataclass(frozen=True)
class Method:
    """A method that ranks test rows, by either ``from_numbers`` or ``from_texts``.

    Attributes:
        name: name on the command line and in results.
        from_numbers: gives (test rows,) scores from graphs, genotypes or counts.
        from_texts: gives (test rows,) scores by a language model.
        needs_sources: whether it learns from labels of other spaces, which only some protocols have.
        checkpoint: whether it starts from a checkpoint.
        package: a package of the extra ``gnn`` that it needs; "" for none.
    """

    name: str
    from_numbers: Callable[[Task], FloatArray] | None = None
    from_texts: Callable[[LanguageModels, Task], FloatArray] | None = None
    needs_sources: bool = False
    checkpoint: Literal["no", "may", "must"] = "no"
    package: str = ""

    def scores(self, models: LanguageModels, task: Task) -> FloatArray:
        """Return the (test rows,) scores of a task.

        Raises:
            ValueError: the scores have another shape or are not finite.
        """
        scores = self._answer(models, task)
        if scores.shape != task.test.shape or not np.isfinite(scores).all():
            raise ValueError(
                f"method {self.name}: expected a finite score for each of {len(task.test)} test rows, got shape "
                f"{scores.shape}, {np.isfinite(scores).sum()} of them finite. Leave it out of --methods, or fix it."
            )
        return scores

    def _answer(self, models: LanguageModels, task: Task) -> FloatArray:
        if self.from_numbers is not None:
            return self.from_numbers(task)
        assert self.from_texts is not None, "a method has one of the two"
        return self.from_texts(models, task)


_METHODS = (
    Method("params", numeric.params),
    Method("macs", numeric.macs),
    Method("lightgbm", numeric.lightgbm, package="lightgbm"),
    Method("forest", numeric.forest),
    Method("lookup", numeric.lookup),
    Method("process", numeric.process),
    Method("process-and-trees", numeric.process_and_trees, package="lightgbm"),
    Method("sources", numeric.sources_alone, needs_sources=True),
    Method("transfer", numeric.transferred, needs_sources=True),
    Method("gnn", gnn, package="torch_geometric"),
    Method("rlm", from_texts=LanguageModels.scratch),
    Method("rlm-mse", from_texts=LanguageModels.mse),
    Method("rlm-ensemble", from_texts=LanguageModels.ensemble),
    Method("rlm-taught", from_texts=LanguageModels.taught, checkpoint="may"),
    Method("rlm-pretrained", from_texts=LanguageModels.pretrained, checkpoint="must"),
    Method("rlm-adapted", from_texts=LanguageModels.adapted, checkpoint="must"),
    Method("rlm-adapted-active", from_texts=LanguageModels.adapted_by_choice, checkpoint="must"),
)
METHODS = {method.name: method for method in _METHODS}
