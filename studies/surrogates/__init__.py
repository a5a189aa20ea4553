"""Surrogates: predictors that replace evaluations in a search, and how they learn from its results."""
