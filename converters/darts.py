"""Graphs of the DARTS space of NAS-Bench-301: the networks of NDS-DARTS. Cells that are sampled have no ``none``."""

from converters.nds import build

__all__ = ["build"]
