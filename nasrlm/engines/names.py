"""The names of the engines, without torch, whose import takes seconds."""

from __future__ import annotations

from typing import Literal

EngineName = Literal["auto", "torch", "onnxruntime", "onnxruntime-int8"]
