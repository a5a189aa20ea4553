"""Import users' functions that are named as ``module:function``."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FUNCTION_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def advice_on_file(name: str) -> str:
    """Return advice if a name gives a file instead of a module; "" for any other name."""
    file, _, function = name.rpartition(":")
    return f"Write {Path(file).stem}:{function} and run in the file's folder." if file.endswith(".py") else ""


def named_function(name: str, what: str) -> Callable[..., Any]:
    """Import the function ``module:function``.

    Args:
        name: of module and function.
        what: the purpose of the function; error messages begin with it.

    Raises:
        ValueError: there is no such module or function; the module's own errors pass through.
    """
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module exists, but imports one that does not
        hint = advice_on_file(name) or "Is it on PYTHONPATH?"
        raise ValueError(f"{what} {name}: expected a module {module_name}, got none. {hint}") from None
    function: Any = getattr(module, function_name, None)
    if not callable(function):
        where = getattr(module, "__file__", None) or module_name  # modules within Python itself have no file
        raise ValueError(f"{what} {name}: expected a function {function_name} in {where}, got {function!r}.")
    return function  # type: ignore[no-any-return]
