"""ONNX Runtime as a predictor's engine: the encoder and the whole walk to quantiles, one model each.

N texts, L text tokens, S states, M objectives, Q levels, R = M * Q rows, T number tokens, D width.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from nasrlm.engines.onnx_encoder import encoder_model
from nasrlm.engines.onnx_walk import walk_model
from nasrlm.model.decoder import Decoder
from nasrlm.model.decoding import numbers_at
from nasrlm.model.encoded import Encoded
from nasrlm.model.encoder import Encoder
from nasrlm.model.language_model import RegressionLanguageModel

ERRORS_ONLY = 3  # ONNX Runtime's log level
ENCODER, WALK = range(2)
_MAKING = Lock()  # of sessions, which several threads ask for at once


class OnnxEngine:
    """Answers of a copy of the weights, within rounding those of torch; with ``int8`` only about so.

    Args:
        model: of the compact kind, see ``why_not_onnx``.
        int8: multiply in 8 bits, which takes half the time again. What a batch is multiplied with is rounded on one
            scale, so an answer depends a little on the texts asked about together.
    """

    tokens_per_batch = 1024  # 512 to 2,048 are alike

    def __init__(self, model: RegressionLanguageModel, *, int8: bool = False) -> None:
        assert isinstance(model.encoder, Encoder), "why_not_onnx comes first"
        assert isinstance(model.decoder, Decoder), "why_not_onnx comes first"
        self.num_workers = torch.get_num_threads()
        self._code = model.code
        self._models = encoder_model(model.encoder, int8=int8), walk_model(model.decoder, int8=int8)
        self._sessions: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """State without sessions, which cannot be copied; they are made anew when first needed."""
        return vars(self) | {"_sessions": {}}

    def encode(self, text_ids: Tensor) -> Tensor:
        """(N, S, D) states."""
        (states,) = self._session(ENCODER).run(None, {"text_ids": text_ids.numpy()})
        return torch.from_numpy(states)

    def quantiles(self, encoded: Encoded, objectives: Tensor, levels: Tensor) -> Tensor:
        """(N, M, Q) float64."""
        shape = len(encoded.states), *levels.shape[-2:]
        ascending, order = levels.double().expand(shape).sort(dim=-1)
        inputs = {
            "states": encoded.states.numpy(),
            "mask": encoded.mask[:, 0, 0].to(torch.int32).numpy(),
            "objectives": objectives.numpy(),
            "levels": np.ascontiguousarray(ascending.numpy()),
        }
        tokens, rest = (torch.from_numpy(part) for part in self._session(WALK).run(None, inputs))
        values = numbers_at(self._code, tokens, rest).reshape(shape)
        return torch.empty_like(values).scatter_(-1, order, values)

    def _session(self, part: int) -> Any:
        with _MAKING:
            if part not in self._sessions:
                self._sessions[part] = _session(self._models[part])
            return self._sessions[part]


def why_not_onnx(model: RegressionLanguageModel) -> str | None:
    """What of a model ONNX Runtime cannot run here; None if it can."""
    device = model.device.type
    if not isinstance(model.encoder, Encoder):
        return f"the backbone {model.config.backbone}"
    if not isinstance(model.decoder, Decoder):
        return f"the head {model.config.head}"
    return None if device == "cpu" else f"a model on {device}"


def _session(model: bytes) -> Any:
    """One thread: whole batches run side by side instead, which needs no waiting for each other."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
