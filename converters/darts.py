"""DARTS as in NAS-Bench-301 as a graph: networks of NDS-DARTS; drawn cells have no ``none``."""

from converters.nds import build

__all__ = ["build"]
