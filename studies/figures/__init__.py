"""Figures of studies in matplotlib and plotly: fronts, hypervolume against evaluations, calibration, cells."""
