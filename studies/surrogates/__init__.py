"""What a search asks instead of evaluating: a predictor, and what it learns from the results of the search."""
