"""The devices of torch, and which of them compute in bfloat16."""

from __future__ import annotations

import torch

INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16")  # CPU capabilities; the last one is ARM's


def torch_device(name: str) -> torch.device:
    """Return the device of this name.

    Raises:
        ValueError: torch cannot use it here.
    """
    try:
        device = torch.empty(0, device=name).device
        # Quantiles are computed in 64 bits, which Apple's "mps" lacks. "meta" fails too: its tensors have no data.
        torch.zeros(1, dtype=torch.float64, device=device).item()
        return device
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as e:
        reason = str(e).splitlines()[0].partition(". ")[0]  # one sentence; torch lists its thirty backends after it
        raise ValueError(f"device: expected one that torch can use here, got {name!r} ({reason}). Try cpu.") from e


def multiplies_bf16(device: torch.device) -> bool:
    """Return whether a device has bfloat16 instructions; a CPU without them takes 15 times as long as with float32."""
    if device.type != "cpu":
        return True
    able = torch.cpu.get_capabilities()
    has_kernels = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return has_kernels and any(able.get(name, False) for name in INSTRUCTIONS)


def autocast(device: torch.device, *, bf16: bool = True) -> torch.autocast:
    """Return a context that computes in bf16 if requested and the device has instructions for it, else in 32 bits."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bf16 and multiplies_bf16(device))
