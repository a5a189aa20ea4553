"""A small published table: NAS-Bench-201 cells, labelled by what their graphs have."""

from pathlib import Path

import numpy as np
import pandas as pd

from spaces import get_space
from studies.surrogates.features import features_of


def write_table(folder: Path, rows: int = 90, name: str = "nasbench201") -> Path:
    """``<name>.parquet`` with accuracy that rises with 3x3 convolutions behind each other, and three latencies."""
    space, rng = get_space(name), np.random.default_rng(0)
    architectures = [space.sample(rng) for _ in range(rows)]
    features = features_of(space, architectures)
    deep = np.array([row.get("walk Conv3x3 > Conv3x3", 0.0) for row in features])
    size = np.array([row["macs"] for row in features])
    labels = {"accuracy@cifar10": 50 + 5 * np.log1p(deep) + rng.normal(0, 0.5, rows)}
    labels |= {f"latency_ms@{device}": size / 1e6 + index for index, device in enumerate(("raspi4", "eyeriss", "fpga"))}
    path = folder / f"{name}.parquet"
    frame = pd.DataFrame({"space": name, "architecture": [space.format(a) for a in architectures], **labels})
    frame.assign(split=["train", "train", "test"] * (rows // 3)).to_parquet(path)
    return path
