"""Options of verbs that load a predictor; not in ``options``, because the names of engines import torch."""

from __future__ import annotations

from typing import Annotated

import typer

from nasrlm.engines.engine import EngineName

DeviceOption = Annotated[str, typer.Option("--device", help="Where torch runs.")]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="What computes; auto is ONNX Runtime on a CPU.")]
