"""Converts architectures to canonical ONNX text, and the text to a model that ONNX Runtime can run."""

from converters.convert import (
    graph_to_onnx_text,
    model_to_graph,
    model_to_onnx_text,
    module_to_onnx_text,
    to_canonical_graph,
    to_graph,
    to_measured_text,
    to_onnx_text,
)
from converters.errors import OnnxModelError
from converters.graph import Graph
from converters.models.torch_module import export_module
from converters.runtime import Latency, machine_description, measure_latencies
from converters.statistics import Statistics, statistics
from converters.text import OnnxTextError, to_model

__all__ = [
    "Graph",
    "Latency",
    "OnnxModelError",
    "OnnxTextError",
    "Statistics",
    "export_module",
    "graph_to_onnx_text",
    "machine_description",
    "measure_latencies",
    "model_to_graph",
    "model_to_onnx_text",
    "module_to_onnx_text",
    "statistics",
    "to_canonical_graph",
    "to_graph",
    "to_measured_text",
    "to_model",
    "to_onnx_text",
]
