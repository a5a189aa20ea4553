"""Options of verbs that load a predictor; apart from ``options``, as importing the names of engines imports torch."""

from __future__ import annotations

from typing import Annotated

import typer

from nasrlm.engines.engine import EngineName

DeviceOption = Annotated[str, typer.Option("--device", help="Where torch runs.")]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="What computes; auto is ONNX Runtime on a CPU.")]
