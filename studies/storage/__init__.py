"""Studies in Optuna storages, and guided searches that several workers share."""
