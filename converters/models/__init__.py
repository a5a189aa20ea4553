"""ONNX models and torch modules made ready to be read, and read."""
