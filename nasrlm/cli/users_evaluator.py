"""A user's function as the evaluator of a search; its errors are reported in one line."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from nasrlm.cli.output import warn
from nasrlm.cli.users_code import add_working_directory, one_line_of_users
from nasrlm.named_function import named_function
from spaces.space import SearchSpace
from studies.evaluators import FunctionEvaluator
from studies.folder import HOW_TO_RESUME

A = TypeVar("A", bound=Hashable)


class UsersEvaluator(FunctionEvaluator[A]):
    """A user's function as an evaluator; if it raises an error or returns unusable results, the search ends.

    Args:
        name: of the function, ``module:function``.
        space: of the architectures that it evaluates.
        objectives: that it returns.
        skips_errors: whether the search continues after an error, with the network counted as having no result.

    Raises:
        ValueError: there is no such function.
    """

    def __init__(self, name: str, space: SearchSpace[A], objectives: Sequence[str], *, skips_errors: bool) -> None:
        add_working_directory()
        expected = f"evaluator {name}: expected a result"
        with one_line_of_users(expected):
            function = named_function(name, "evaluator")

        def evaluate(notation: str) -> Mapping[str, float]:
            with one_line_of_users(f"{expected} for {notation}"):
                return function(notation)  # type: ignore[no-any-return]

        super().__init__(space, evaluate, objectives=objectives)
        self.skips_errors = skips_errors

    def _results(self, notation: str) -> list[float]:
        try:
            return super()._results(notation)
        except ValueError as e:
            exits = not isinstance(e.__cause__ or e, Exception)
            if self.skips_errors and not exits:
                warn(f"{e} The network counts as one without a result.")
                return [math.nan] * len(self.objectives)
            advice = "Return NaN where there is no result" if exits else "Pass --on-error skip to skip this network"
            raise ValueError(f"{e} {advice}. {HOW_TO_RESUME}") from e
