"""What a benchmark was measured on, for the record."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nasrlm.checkpoint import torch_device


def circumstances(config: Any, device: str = "cpu") -> dict[str, object]:
    """Commit, machine, versions and the config, a dataclass, as values for JSON."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    is_gpu = torch_device(device).type == "cuda"
    return {
        "commit": commit.stdout.strip() or None,
        "machine": torch.cuda.get_device_name(device) if is_gpu else platform.platform(),
        "threads": torch.get_num_threads(),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
        "config": json.loads(json.dumps(asdict(config), default=str)),
    }
