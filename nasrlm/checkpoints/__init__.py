"""Trained models in folders, and the commands that made them."""
