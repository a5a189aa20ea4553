"""Trained models in folders, and the steps that made them."""
