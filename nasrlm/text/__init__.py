"""Canonical ONNX text: its lines and blocks, counts of its operators, its form for the encoder, and its tokens."""
