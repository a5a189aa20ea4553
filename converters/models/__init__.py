"""Preparation of ONNX models and torch modules, and the reader that makes graphs of them."""
