"""What tests share that export modules with torch's newer exporter."""

from functools import cache

import pytest


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch, conversions_read_once: object) -> None:
    """Let the exporter keep the conversions of torch's operators, which it otherwise reads anew for each module."""
    monkeypatch.setattr("torch.onnx._internal.exporter._registration.ONNXRegistry.from_torchlib", conversions_read_once)


@pytest.fixture(scope="session")
def conversions_read_once() -> object:
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    return staticmethod(cache(ONNXRegistry.from_torchlib))
