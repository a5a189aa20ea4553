"""Figures of studies in matplotlib and plotly: fronts, hypervolume by evaluations, calibration, cells."""
