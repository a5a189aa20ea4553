"""What computes a predictor's answers: torch, or ONNX Runtime."""
