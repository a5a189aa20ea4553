"""Torch modules of the user's, named by the function that makes them."""

from __future__ import annotations

from converters import Graph, OnnxModelError, model_to_graph
from converters.graph import Shape
from converters.torch_module import export_module, load_module
from nasrlm.cli.users_code import see_own_modules


def named_graph(name: str, shape: Shape) -> Graph:
    """The faithful graph of what ``pkg.module:factory`` makes.

    Raises:
        ValueError: there is no such function, it makes no module, or the module cannot be exported.
    """
    see_own_modules()
    module = load_module(name)
    try:
        return model_to_graph(export_module(module, shape))
    except OnnxModelError as e:
        raise OnnxModelError(f"{name}: {e}") from e
