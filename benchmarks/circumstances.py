"""The circumstances of a benchmark, printed with its results."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from converters import machine_description
from nasrlm.model.devices import torch_device
from nasrlm.versions import versions_of


def circumstances(config: Any, device: str = "cpu") -> dict[str, object]:
    """Return commit, machine, versions, and the config, which is a dataclass, as values for JSON."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    is_gpu = torch_device(device).type == "cuda"
    return {
        "commit": commit.stdout.strip() or None,
        "machine": torch.cuda.get_device_name(device) if is_gpu else machine_description(),
        "threads": torch.get_num_threads(),
        "versions": versions_of("torch", "numpy", "onnx"),
        "config": json.loads(json.dumps(asdict(config), default=str)),
    }
