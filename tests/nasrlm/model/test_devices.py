"""A device needs 64 bits, and training multiplies 16 bits only where a device has instructions for it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml

from nasrlm.model.devices import INSTRUCTIONS, multiplies_bf16, torch_device
from nasrlm.model.encoder import Encoder
from tests.nasrlm.conftest import CommandLine
from tests.nasrlm.runs import config, first_losses
from tests.nasrlm.scenes import SIZES, layer_table
from tests.nasrlm.workplace import assert_one_line

Processor = Callable[..., None]


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> Processor:
    """One with these instructions and no others."""
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)

    def pretend(*instructions: str) -> None:
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: dict.fromkeys(instructions, True))

    return pretend


def test_a_device_without_64_bits_is_refused_before_its_first_quantile(monkeypatch: pytest.MonkeyPatch) -> None:
    def zeros(*sizes: int, dtype: torch.dtype | None = None, **_: object) -> torch.Tensor:
        if dtype is torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype. Please use float32 instead.")
        return torch.ones(sizes)

    monkeypatch.setattr(torch, "zeros", zeros)
    with pytest.raises(ValueError, match=r"got 'cpu' \(Cannot convert a MPS Tensor to float64 dtype\)\. Try cpu\.$"):
        torch_device("cpu")


def test_a_backend_that_torch_was_built_without_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"got 'vulkan' \(Could not run .{,90} backend\)\. Try cpu\.$"):
        torch_device("vulkan")


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_any_of_the_instructions_will_do(processor: Processor, instruction: str) -> None:
    processor("avx2", instruction)
    assert multiplies_bf16(torch.device("cpu"))


def test_a_gpu_has_them_whatever_the_processor(processor: Processor) -> None:
    processor("avx2")
    assert not multiplies_bf16(torch.device("cpu"))
    assert multiplies_bf16(torch.device("cuda"))


def test_a_processor_without_them_trains_in_32_bits(tmp_path: Path, processor: Processor) -> None:
    processor("avx2")
    expected = first_losses(tmp_path)
    assert first_losses(tmp_path, bf16=True) == expected
    processor("avx2", "avx512_bf16")
    rounded = first_losses(tmp_path, bf16=True)
    assert rounded != expected
    assert rounded == pytest.approx(expected, rel=0.02)


def test_the_command_says_so(tmp_path: Path, processor: Processor, nasrlm: CommandLine) -> None:
    table, path = tmp_path / "layers.parquet", tmp_path / "config.yaml"
    chosen = config(tmp_path / "run", table=str(table), epochs=1, bf16=True)
    path.write_text(yaml.safe_dump(chosen.model_dump(mode="json", exclude_defaults=True)))
    said = "this processor multiplies 16-bit numbers more slowly than 32-bit ones"
    processor("avx2")
    assert_one_line(nasrlm("train", "--config", path), "layers.parquet: expected a table, got no such file.")
    layer_table(24).assign(split=["train", "valid", "train", "test"] * 6).to_parquet(table)
    assert said in nasrlm("train", "--config", path).stderr
    processor("amx_bf16")
    assert said not in nasrlm("train", "--config", path, "--out", tmp_path / "other").stderr


@pytest.mark.parametrize("tokens_per_state", [1, 2])
def test_states_are_summed_in_32_bits(tokens_per_state: int) -> None:
    encoder = Encoder(replace(SIZES, num_encoder_layers=2, tokens_per_state=tokens_per_state), 20)
    kinds = []
    for norm in (x for x in encoder.modules() if isinstance(x, torch.nn.RMSNorm)):
        norm.register_forward_pre_hook(lambda _, given: kinds.append(given[0].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        encoder(torch.ones(2, 7, dtype=torch.long))
    assert set(kinds) == {torch.float32}
