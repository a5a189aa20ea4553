"""Passes over graphs: normalisation of layers, simplification, canonical order, and outlining of repeated blocks."""
