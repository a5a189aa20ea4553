"""Architectures to canonical ONNX text, and from the text to a model that ONNX Runtime runs."""

from converters.convert import to_graph, to_onnx_text
from converters.text import OnnxTextError, to_model

__all__ = ["OnnxTextError", "to_graph", "to_model", "to_onnx_text"]
