"""The command for a GPU works on a CPU at small size, and counts operations as one would by hand."""

import json
from dataclasses import replace

import pytest
import torch

from benchmarks import scale
from benchmarks.scale import SIZES, VOCABULARY, Config, main, measure, stated_tflops
from nasrlm.model.config import ModelConfig
from nasrlm.model.language_model import RegressionLanguageModel
from nasrlm.model.number import NumberCode

TINY = ModelConfig(width=32, num_heads=1, num_encoder_layers=2, num_decoder_layers=1, hidden=64, dropout=0.0)
CONFIG = Config(sizes=("1M",), batch=2, length=512, objectives=1, steps=1, peak_tflops=0.5)


@pytest.mark.parametrize(("name", "parameters"), [("1M", 1e6), ("60M", 60e6), ("300M", 300e6)])
def test_sizes_are_what_they_are_called(name: str, parameters: float) -> None:
    with torch.device("meta"):
        model = RegressionLanguageModel(SIZES[name], VOCABULARY, 6, NumberCode())
    assert model.num_parameters == pytest.approx(parameters, rel=0.07)


def test_operations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "1M", TINY)
    (found,) = measure(CONFIG, progress=False)
    D, H, L = TINY.width, TINY.hidden, CONFIG.length
    a_token = 2 * (4 * D * D + 3 * D * H) + 2 * 2 * L * D  # of a layer: weights, then attention's two products
    encoder = 3 * CONFIG.batch * L * TINY.num_encoder_layers * a_token  # backward takes twice what forward does
    assert found.tflops_per_second * found.seconds_per_step * 1e12 == pytest.approx(encoder, rel=0.1)
    assert found.utilisation == pytest.approx(found.tflops_per_second / 0.5)
    assert found.tokens_per_second == pytest.approx(CONFIG.batch * L / found.seconds_per_step)
    assert found.memory_gib > 0


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(SIZES, "1M", TINY)
    monkeypatch.setattr(scale, "measured_tflops", lambda device: 1.0)
    main(["--sizes", "1M", "--batch", "2", "--length", "16", "--steps", "2"])
    printed = capsys.readouterr().out.strip().splitlines()
    assert json.loads(printed[-1])["measured"][0]["size"] == "1M"
    assert "utilisation" in printed[1]


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="device: expected one that torch can use here, got 'nowhere'"):
        measure(replace(CONFIG, device="nowhere"), progress=False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H100 80GB HBM3")
    assert stated_tflops(torch.device("cuda")) == 989
    assert stated_tflops(torch.device("cpu")) is None


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    (found,) = measure(replace(CONFIG, device="cuda", batch=64, peak_tflops=None), progress=False)
    assert 0 < found.utilisation < 1
