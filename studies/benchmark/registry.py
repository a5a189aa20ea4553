"""The methods of ``nasrlm benchmark`` and what they need; how they rank test rows is in ``scoring``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Method:
    """What a method needs.

    Attributes:
        name: name on the command line and in results.
        needs_sources: whether it learns from labels of other spaces, which only some protocols have.
        checkpoint: whether it starts from a checkpoint.
        package: a package of the extra ``gnn`` that it needs; "" for none.
    """

    name: str
    needs_sources: bool = False
    checkpoint: Literal["no", "may", "must"] = "no"
    package: str = ""


_METHODS = (
    Method("params"),
    Method("macs"),
    Method("lightgbm", package="lightgbm"),
    Method("forest"),
    Method("lookup"),
    Method("process"),
    Method("process-and-trees", package="lightgbm"),
    Method("sources", needs_sources=True),
    Method("transfer", needs_sources=True),
    Method("gnn", package="torch_geometric"),
    Method("rlm"),
    Method("rlm-mse"),
    Method("rlm-ensemble"),
    Method("rlm-taught", checkpoint="may"),
    Method("rlm-pretrained", checkpoint="must"),
    Method("rlm-adapted", checkpoint="must"),
    Method("rlm-adapted-active", checkpoint="must"),
)
METHODS = {method.name: method for method in _METHODS}
