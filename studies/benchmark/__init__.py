"""Benchmark methods that rank networks from few labels: protocols, methods on the same rows, and their results.

    config = BenchmarkConfig("nasbench201-fewlabels", methods=("macs", "process"), seeds=5)
    records = run_benchmark(config, Tables(folder), results_path)

A protocol (protocol.py) defines objectives, numbers of labels, and the measure of quality. A task (task.py) is one draw
of labelled rows. A method (registry.py) gives a score for every test row of a task (scoring.py), from numbers
(methods.py), graphs (graph_network.py) or text (language_models.py). run.py runs every method on every task, and
results.py appends one line for each, so that a stopped run can be continued.
"""
