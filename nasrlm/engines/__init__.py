"""The engines that compute predictions: torch and ONNX Runtime."""
