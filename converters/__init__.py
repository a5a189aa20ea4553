"""Architectures to canonical ONNX text, and from the text to a model that ONNX Runtime runs."""

from converters.convert import to_canonical_graph, to_graph, to_measured_text, to_onnx_text
from converters.runtime import Latency, machine_description, measure_latencies
from converters.statistics import Statistics, statistics
from converters.text import OnnxTextError, to_model

__all__ = [
    "Latency",
    "OnnxTextError",
    "Statistics",
    "machine_description",
    "measure_latencies",
    "statistics",
    "to_canonical_graph",
    "to_graph",
    "to_measured_text",
    "to_model",
    "to_onnx_text",
]
