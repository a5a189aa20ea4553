"""What ranks networks best from few labels: protocols, methods on identical rows, and their results row by row.

    config = BenchmarkConfig("nasbench201-fewlabels", methods=("macs", "process"), seeds=5)
    records = run_benchmark(config, Tables(folder), results_path)

A protocol (protocol.py) says which objectives, how many labels and how the answer is judged. A task (task.py) is one
draw of labelled rows; a method answers it with a score for every test row (methods.py: what reads numbers;
graph_network.py: what reads graphs; language_models.py: what reads text). run.py asks every method every task and
results.py keeps each answer's quality as one line, so that a stopped run goes on.
"""
