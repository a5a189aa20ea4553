"""Guided searches in Optuna storages that several workers share."""
