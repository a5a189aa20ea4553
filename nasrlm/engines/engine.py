"""What computes a predictor's answers: torch, or ONNX Runtime, which takes half the time on a CPU.

N texts, L text tokens, S states, M objectives, Q levels, D width.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from nasrlm.model.decoding import quantiles
from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel

EngineName = Literal["auto", "torch", "onnxruntime", "onnxruntime-int8"]


class Engine(Protocol):
    """The two costly parts of an answer."""

    @property
    def tokens_per_batch(self) -> int:
        """How many text tokens are best read together."""

    @property
    def num_workers(self) -> int:
        """How many batches are best read at a time, each in its thread."""

    def encode(self, text_ids: Tensor) -> Tensor:
        """(N, L) ids, 0 = padding, to (N, S, D) states."""

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """(N, M, Q) float64 of (M,) objectives that are spelled, at (N, M, Q) or (M, Q) levels, in their own units."""


class TorchEngine:
    """The model itself, on the device it is on; answers follow its weights."""

    num_workers = 1  # torch has its own threads

    def __init__(self, model: RegressionLanguageModel) -> None:
        self.model = model

    @property
    def tokens_per_batch(self) -> int:
        """On a CPU what fits its caches: 1,024 to 2,048 took 12 % less time than 8,192."""
        return 2048 if self.model.device.type == "cpu" else 32_768

    @torch.inference_mode()
    def encode(self, text_ids: Tensor) -> Tensor:
        """(N, S, D) states."""
        encoded: Encoded = self.model.encoder(text_ids.to(self.model.device))
        return encoded.states

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """(N, M, Q) float64."""
        return quantiles(self.model, encoded, objectives, levels.to(objectives.device))


def make_engine(name: str, model: RegressionLanguageModel) -> Engine:
    """An engine by its name; "auto" is ONNX Runtime where it can run the model, torch elsewhere.

    ONNX Runtime was faster wherever both were measured (docs/log.md). They are not timed here: their answers differ in
    the last digits, and which ones one gets must not depend on how busy a machine is.

    All but torch take a copy of the weights as they are now.

    Raises:
        ValueError: another name, or ONNX Runtime cannot run the model.
    """
    if name not in get_args(EngineName):
        raise ValueError(f"engine: expected one of {', '.join(get_args(EngineName))}, got {name!r}.")
    if name == "torch":
        return TorchEngine(model)
    from nasrlm.engines.onnx_engine import (  # here: a quarter of a second, of which torch has no use
        OnnxEngine,
        why_not_onnx,
    )

    reason = why_not_onnx(model)
    if reason and name == "auto":
        return TorchEngine(model)
    if reason:
        raise ValueError(
            f"engine {name}: expected a compact model that spells numbers, on a CPU, got {reason}. Use torch."
        )
    return OnnxEngine(model, int8=name == "onnxruntime-int8")
