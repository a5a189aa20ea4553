"""A torch module that a user's function makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nasrlm.cli.users_code import one_line_of_users, see_own_modules
from nasrlm.named_function import named_function

if TYPE_CHECKING:
    import torch


def users_module(name: str) -> torch.nn.Module:
    """What ``pkg.module:factory``, which takes no arguments, returns.

    Raises:
        ValueError: there is no such function, it fails, or returns something else; one line.
    """
    from torch.nn import Module  # takes seconds, and who converts ONNX files needs none

    see_own_modules()
    expected = f"module {name}: expected a function that takes no arguments and returns a torch.nn.Module"
    with one_line_of_users(expected):
        module = named_function(name, "module")()
    if not isinstance(module, Module):
        raise ValueError(f"{expected}, got one that returns {type(module).__name__}.")
    return module
