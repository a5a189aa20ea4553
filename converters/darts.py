"""DARTS as in NAS-Bench-301 as a graph: the networks of NDS-DARTS, without ``none``."""

from converters.nds import build

__all__ = ["build"]
