"""ONNX Runtime as a predictor's engine: one model for the encoder, and one for the whole walk to quantiles.

N texts, L text tokens, S states, M objectives, Q levels, R = M * Q rows, T number tokens, D width.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor

from nasrlm.engines.onnx_encoder import encoder_model
from nasrlm.engines.onnx_walk import walk_model
from nasrlm.model.decoder import Decoder
from nasrlm.model.decoding import numbers_at
from nasrlm.model.encoded import Encoded
from nasrlm.model.encoder import Encoder
from nasrlm.model.language_model import RegressionLanguageModel

ERRORS_ONLY = 3  # ONNX Runtime's log level


class OnnxEngine:
    """An engine with a copy of the weights; results equal those of torch up to rounding, with ``int8`` roughly.

    Args:
        model: with a compact encoder, see ``why_not_onnx``.
        int8: multiply in 8 bits, which halves the time again. Activations of a batch are rounded on one scale, so
            predictions depend a little on the other texts of the batch.
    """

    tokens_per_batch = 1024  # 512 to 2,048 are equally fast

    def __init__(self, model: RegressionLanguageModel, *, int8: bool = False) -> None:
        assert isinstance(model.encoder, Encoder), "why_not_onnx comes first"
        assert isinstance(model.decoder, Decoder), "why_not_onnx comes first"
        self.num_workers = torch.get_num_threads()
        self._code = model.code
        self._encoder = _OnnxModel(encoder_model(model.encoder, int8=int8))
        self._walk = _OnnxModel(walk_model(model.decoder, int8=int8))

    def encode(self, text_ids: Tensor) -> Tensor:
        """Encode texts to (N, S, D) states."""
        (states,) = self._encoder.run({"text_ids": text_ids.numpy()})
        return torch.from_numpy(states)

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """Decode (N, M, Q) float64 quantiles."""
        shape = len(encoded.states), *levels.shape[-2:]
        ascending, order = levels.double().expand(shape).sort(dim=-1)
        inputs = {
            "states": encoded.states.numpy(),
            "mask": encoded.mask[:, 0, 0].to(torch.int32).numpy(),
            "objectives": objectives.numpy(),
            "levels": np.ascontiguousarray(ascending.numpy()),
        }
        tokens, rest = (torch.from_numpy(part) for part in self._walk.run(inputs))
        values = numbers_at(self._code, tokens, rest).reshape(shape)
        return torch.empty_like(values).scatter_(-1, order, values)


def why_not_onnx(model: RegressionLanguageModel) -> str | None:
    """Return, in words, the part of a model that ONNX Runtime cannot run here; None if it can run all."""
    device = model.device.type
    if not isinstance(model.encoder, Encoder):
        return f"the backbone {model.config.backbone}"
    if not isinstance(model.decoder, Decoder):
        return f"the head {model.config.head}"
    return None if device == "cpu" else f"a model on {device}"


class _OnnxModel:
    """A model whose session, which several threads may share, is made when first needed; copies make their own."""

    def __init__(self, model: bytes) -> None:
        self._model, self._making = model, Lock()
        self._session: Any = None

    def __reduce__(self) -> tuple[type[_OnnxModel], tuple[bytes]]:
        return _OnnxModel, (self._model,)  # sessions cannot be copied

    def run(self, inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the outputs for inputs by name."""
        with self._making:
            if self._session is None:
                self._session = _session(self._model)
        outputs: list[NDArray[Any]] = self._session.run(None, inputs)
        return outputs


def _session(model: bytes) -> Any:
    """Make a session with one thread: running whole batches in parallel instead needs no synchronisation."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
