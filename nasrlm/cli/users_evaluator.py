"""A user's function as the evaluator of a search: what it raises is told in one line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nasrlm.cli.output import warn
from nasrlm.cli.users_code import one_line_of_users, see_own_modules
from nasrlm.named_function import named_function
from spaces.space import SearchSpace
from studies.evaluators import FunctionEvaluator
from studies.folder import GO_ON

HINT = "Let it answer NaN where there is no result"


def users_evaluator(
    name: str, space: SearchSpace[Any], objectives: Sequence[str], *, skips_errors: bool
) -> FunctionEvaluator[Any]:
    """The evaluator that a user's function is.

    Args:
        name: ``module:function``.
        space: of the architectures that it is asked for.
        objectives: that it answers.
        skips_errors: whether a network for which it raises an error has no result; else the search ends.

    Raises:
        ValueError: there is no such function.
    """
    see_own_modules()
    expected = f"evaluator {name}: expected an answer"
    with one_line_of_users(expected):
        function = named_function(name, "evaluator")

    def evaluate(notation: str) -> Mapping[str, float]:
        try:
            with one_line_of_users(f"{expected} for {notation}"):
                return function(notation)  # type: ignore[no-any-return]
        except ValueError as e:
            if not skips_errors:
                raise ValueError(f"{e} {HINT}, or pass --on-error skip. {GO_ON}") from e
            if not isinstance(e.__cause__ or e, Exception):  # it asks to exit
                raise ValueError(f"{e} {HINT}. {GO_ON}") from e
            warn(f"{e} It counts as without a result.")
            return dict.fromkeys(objectives, math.nan)

    return FunctionEvaluator(space, evaluate, objectives=objectives)
