"""Passes over graphs: one spelling of every layer, only what is computed, one order, blocks written once."""
