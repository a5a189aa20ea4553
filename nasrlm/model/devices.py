"""Where torch computes, and in how many bits."""

from __future__ import annotations

import torch

INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16")  # the last is ARM's


def torch_device(name: str) -> torch.device:
    """The device of this name.

    Raises:
        ValueError: torch cannot use it here.
    """
    try:
        device = torch.empty(0, device=name).device
        torch.zeros(1, device=device).item()  # meta has no numbers
        return device
    except (RuntimeError, AssertionError, NotImplementedError) as e:
        reason = str(e).splitlines()[0]
        raise ValueError(f"device: expected one that torch can use here, got {name!r} ({reason}). Try cpu.") from e


def multiplies_bf16(device: torch.device) -> bool:
    """Whether a device has instructions for it; a processor without them takes 15 times as long as with 32 bits."""
    if device.type != "cpu":
        return True
    able = torch.cpu.get_capabilities()
    has_kernels = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return has_kernels and any(able.get(name, False) for name in INSTRUCTIONS)


def autocast(device: torch.device, *, bf16: bool = True) -> torch.autocast:
    """bf16 where it is asked for and the device has instructions for it, 32 bits elsewhere."""
    return torch.autocast(device.type, torch.bfloat16, enabled=bf16 and multiplies_bf16(device))
