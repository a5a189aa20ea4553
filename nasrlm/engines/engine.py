"""The engines that compute predictions: torch, or ONNX Runtime, which takes half the time on a CPU.

N texts, L text tokens, S states, M objectives, Q levels, D width.
"""

from __future__ import annotations

from typing import Protocol, get_args

import torch
from torch import Tensor

from nasrlm.engines.names import EngineName
from nasrlm.model.decoding import quantiles
from nasrlm.model.encoded import Encoded
from nasrlm.model.language_model import RegressionLanguageModel


class Engine(Protocol):
    """The two costly parts of a prediction: encoding texts, and decoding quantiles."""

    @property
    def tokens_per_batch(self) -> int:
        """Number of text tokens in a batch with which encoding is fastest."""

    @property
    def num_workers(self) -> int:
        """Number of batches to encode at a time, each in a thread of its own."""

    def encode(self, text_ids: Tensor) -> Tensor:
        """Encode (N, L) ids, 0 = padding, to (N, S, D) states."""

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """Decode (N, M, Q) float64 quantiles of (M,) objectives, in their own units, at (N, M, Q) or (M, Q) levels."""


class TorchEngine:
    """An engine that calls the model itself, on its device; it follows changes of the weights."""

    num_workers = 1  # torch has its own threads

    def __init__(self, model: RegressionLanguageModel) -> None:
        self.model = model

    @property
    def tokens_per_batch(self) -> int:
        """On a CPU a batch that fits its caches: 1,024 to 2,048 tokens took 12 % less time than 8,192."""
        return 2048 if self.model.device.type == "cpu" else 32_768

    @torch.inference_mode()
    def encode(self, text_ids: Tensor) -> Tensor:
        """Encode texts to (N, S, D) states."""
        encoded: Encoded = self.model.encoder(text_ids.to(self.model.device))
        return encoded.states

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """Decode (N, M, Q) float64 quantiles."""
        return quantiles(self.model, encoded, objectives, levels.to(objectives.device))


def make_engine(name: str, model: RegressionLanguageModel) -> Engine:
    """Make an engine by its name; "auto" is ONNX Runtime if it can run the model, else torch.

    ONNX Runtime was faster wherever both were measured (docs/log.md, 2026-11-22). They are not timed here,
    because their results differ in the last digits, and must not depend on how busy a machine is.

    All engines but torch copy the weights as they are now.

    Raises:
        ValueError: another name, or ONNX Runtime cannot run the model.
    """
    if name not in get_args(EngineName):
        raise ValueError(f"engine: expected one of {', '.join(get_args(EngineName))}, got {name!r}.")
    if name == "torch":
        return TorchEngine(model)
    from nasrlm.engines.onnx_engine import (  # here: takes a quarter of a second, and torch does not need it
        OnnxEngine,
        why_not_onnx,
    )

    reason = why_not_onnx(model)
    if reason and name == "auto":
        return TorchEngine(model)
    if reason:
        raise ValueError(
            f"engine {name}: expected a compact model on a CPU that predicts numbers digit by digit, got {reason}. "
            "Use torch."
        )
    return OnnxEngine(model, int8=name == "onnxruntime-int8")
