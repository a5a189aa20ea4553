"""Make the evaluators of ``nasrlm search --evaluator`` that give real results."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from converters.tables.counts import COUNTS
from nasrlm.arrays import complete_mask
from nasrlm.cli.output import warn
from nasrlm.cli.users_code import add_working_directory, one_line_of_users
from nasrlm.files import TABLE_ENDINGS
from nasrlm.named_function import FUNCTION_NAME, advice_on_file, named_function
from nasrlm.predictor import Predictor
from spaces.space import SearchSpace
from studies.evaluators import FunctionEvaluator, MeasuringEvaluator, RealEvaluator, TableEvaluator
from studies.folder import HOW_TO_RESUME
from studies.tables.files import read_table

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


def table_evaluator(space: SearchSpace[Any], path: Path, objectives: Sequence[str]) -> TableEvaluator[Any]:
    """Open a table as an evaluator; missing counts such as ``params`` are computed, with a progress bar.

    Raises:
        ValueError: it cannot be read, lacks another objective, or has predictions, as of a search without real results.
    """
    frame = read_table(path, require=[name for name in objectives if name not in COUNTS])
    table = TableEvaluator(space, frame, objectives=objectives, name=str(path), progress=True)
    if table.num_overruled:
        what = f"{table.num_overruled:,} rows have labels that differ from an earlier row of the same architecture"
        warn(f"{path}: {what}: the earlier labels are used.")
    return table


def complete_results(space: SearchSpace[Any], path: Path, objectives: Sequence[str]) -> TableEvaluator[Any]:
    """Open a table as an evaluator; warn how many networks are left out because they lack an objective.

    Raises:
        ValueError: no network has all objectives, or as ``table_evaluator``.
    """
    table = table_evaluator(space, path, objectives)
    if not table.known:
        raise ValueError(
            f"{path}: expected rows with {', '.join(objectives)}, got none for {len(table.keys)} networks."
        )
    if lacking := int((~complete_mask(table.labels)).sum()):
        what = f"{lacking:,} of {len(table.keys):,} networks lack one of {', '.join(objectives)}"
        warn(f"{path}: {what}: they are left out.")
    return table


def real_evaluator(
    name: str,
    space: SearchSpace[Any],
    objectives: Sequence[str],
    to_text: Callable[[Any], str],
    predictor: Callable[[], Predictor],
    on_error: str,
) -> RealEvaluator[Any]:
    """Make the evaluator that ``--evaluator`` names.

    Args:
        name: table:PATH, module:function or measure.
        space: the space that is searched.
        objectives: M names.
        to_text: converts an architecture to the text that is measured.
        predictor: loads the model, for objectives that are not measured.
        on_error: "skip" if the search continues after an error in the user's function.

    Raises:
        ValueError: ``name`` is none of them, or the evaluator lacks objectives.
    """
    kind, _, rest = name.partition(":")
    if name == "measure":
        return MeasuringEvaluator(space, objectives=objectives, predictor=predictor(), to_text=to_text)
    if kind == "table" and rest:
        return complete_results(space, Path(rest), objectives)
    if FUNCTION_NAME.fullmatch(name) and ".py:" not in name:
        return UsersEvaluator(name, space, objectives, skips_errors=on_error == "skip")
    hint = f"Write table:{name}." if Path(name).suffix.lower() in TABLE_ENDINGS else advice_on_file(name)
    expected = "surrogate, table:PATH, module:function or measure"
    raise ValueError(f"--evaluator: expected {expected}, got {name!r}. {hint}".rstrip())
