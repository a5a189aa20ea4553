"""Modules of users' functions that are named as ``module:function``."""

from __future__ import annotations

import importlib
from types import ModuleType


def named_module(name: str, what: str) -> ModuleType:
    """The module of ``module:function``.

    Args:
        name: of module and function.
        what: what the function is for, with which a message begins.

    Raises:
        ValueError: there is no such module; the module's own errors pass through.
    """
    module_name = name.partition(":")[0]
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and lacks another
        raise ValueError(f"{what} {name}: expected a module {module_name}, got none. Is it on PYTHONPATH?") from None
