"""Options of verbs that load a predictor; not in ``options``, because few verbs do."""

from __future__ import annotations

from typing import Annotated

import typer

from nasrlm.engines.names import EngineName

DeviceOption = Annotated[str, typer.Option("--device", help="Torch device, such as cpu or cuda.")]
EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Engine that runs the model; auto: ONNX Runtime on a CPU, else torch.")
]
