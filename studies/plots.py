"""Figures of studies."""

from pathlib import Path


def plot_study(folder: Path) -> None: ...
