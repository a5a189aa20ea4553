"""New objectives from a few labels, and costs as sums over operators: Gaussian processes, trees, graph networks."""
