"""Load a user's function that augments the texts of train rows."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable

import numpy as np

from nasrlm.named_function import named_function

Augmentation = Callable[[str, np.random.Generator], str]


def load_augmentation(name: str) -> Augmentation:
    """Load the function that ``module:function`` names.

    The function takes a text and returns a text. If it has a second parameter without a default, it is also given a
    ``numpy.random.Generator``, seeded by the run's seed and the step only. It must draw from this generator only, or
    the run cannot be repeated.

    Returns:
        The function, with a generator as its second argument in any case. It raises a ValueError if the user's function
        raises an error, which the message describes with its line, or does not return a valid text.

    Raises:
        ValueError: there is no such module or function, or it has other parameters. Errors of the module itself, raised
            while it is imported, pass through.
    """
    function = named_function(name, "augment")
    takes_generator = _num_parameters(name, function) == 2

    def augment(text: str, rng: np.random.Generator) -> str:
        try:
            changed = function(text, rng) if takes_generator else function(text)
        except (Exception, SystemExit) as e:
            said = " ".join(f"{type(e).__name__}: {e}{_place_of(e)}".split())
            raise ValueError(f"augment {name}: expected a text, got {said} for {text[:40]!r}…") from e
        if not isinstance(changed, str) or not changed:
            raise ValueError(f"augment {name}: expected a text that is not empty, got {changed!r} for {text[:40]!r}…")
        try:
            changed.encode()
        except UnicodeEncodeError as e:
            problem = f"expected text that UTF-8 can encode, got {e.reason} for {text[:40]!r}…"
            raise ValueError(f"augment {name}: {problem}") from e
        return changed

    return augment


def _num_parameters(name: str, function: Callable[..., object]) -> int:
    """Return the number of parameters without a default of an augmentation, 1 or 2.

    Raises:
        ValueError: it has another number of them, or does not say which parameters it has.
    """
    try:
        signature = inspect.signature(function)
    except ValueError as e:  # a function written in C
        raise ValueError(
            f"augment {name}: expected a function with known parameters, got {function!r}. Wrap it in a Python "
            "function."
        ) from e
    parameters = sum(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in signature.parameters.values()
    )
    if parameters not in (1, 2):
        raise ValueError(
            f"augment {name}: expected a function of a text, or of a text and a generator, got {parameters} "
            "parameters without a default."
        )
    return parameters


def _place_of(error: BaseException) -> str:
    """Return file and line of the called function at which an error was raised; "" for functions written in C."""
    frames = traceback.extract_tb(error.__traceback__)[1:2]
    return "".join(f" ({frame.filename}:{frame.lineno})" for frame in frames)
