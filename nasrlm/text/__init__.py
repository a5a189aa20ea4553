"""Canonical ONNX text: its lines and blocks, what is counted in it, how it is shown to the encoder, and its tokens."""
