"""Methods on identical rows: what they know, what they may not see, and runs that go on after a stop."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nasrlm.adaptation import adapt as adaptation
from nasrlm.adaptation import graph_network_fit
from nasrlm.adaptation.pool import Pool
from nasrlm.arrays import FloatArray
from nasrlm.checkpoints.checkpoint import Checkpoint
from studies.benchmark import language_models, methods
from studies.benchmark.language_models import LanguageModels
from studies.benchmark.protocol import PROTOCOLS, Protocol, Target, get_protocol
from studies.benchmark.registry import METHODS
from studies.benchmark.results import Record, Results, summary
from studies.benchmark.run import BenchmarkConfig, run_benchmark
from studies.benchmark.scoring import FROM_NUMBERS, FROM_TEXTS
from studies.benchmark.task import Tables, Task, draw_task
from tests.nasrlm.conftest import CommandLine, checkpoint, checkpoint_folder, nasrlm  # noqa: F401
from tests.studies.benchmark.scenes import write_table

NAME = "nasbench201-fewlabels"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    write_table(path)
    write_table(path, rows=30, name="nasbench_macro")
    return path


@pytest.fixture(scope="module")
def task(folder: Path) -> Task:
    return draw_task(get_protocol(NAME), Tables(folder), get_protocol(NAME).targets[0], 40, seed=1)


def test_labels_are_drawn_from_train_rows_and_smaller_draws_lie_in_larger_ones(folder: Path, task: Task) -> None:
    splits = task.table.frame["split"].to_numpy()
    assert set(splits[task.train]) == {"train"}
    assert len(set(task.train)) == 40
    assert (np.flatnonzero(splits == "test") == task.test).all()
    smaller, other = (draw_task(get_protocol(NAME), Tables(folder), task.target, 10, seed) for seed in (1, 2))
    assert set(smaller.train) < set(task.train)
    assert set(smaller.train) != set(other.train)


@pytest.mark.parametrize(("name", "least"), [("process", 0.6), ("lightgbm", 0.5), ("process_and_trees", 0.6)])
def test_what_reads_graphs_learns_what_is_behind_the_labels(task: Task, name: str, least: float) -> None:
    assert _tau(task, getattr(methods, name)(task)) > least


def test_a_forest_on_genotypes_learns_something(task: Task) -> None:
    assert _tau(task, methods.forest(task)) > 0.2


def test_a_lookup_table_knows_sums_of_choices(task: Task) -> None:
    genes = task.table.genotypes(np.arange(len(task.table.frame)))
    costs = genes @ np.arange(1.0, genes.shape[1] + 1)  # the fourth choice of a gene costs three times the second
    task.table.frame["latency_ms@sum"] = costs
    summed = replace(task, target=Target("nasbench201", "latency_ms@sum"))
    assert _tau(summed, methods.lookup(summed)) > 0.97
    task.table.frame["latency_ms@sum"] = 3.0
    assert np.ptp(methods.lookup(summed)) == 0


def test_counts_are_of_the_test_rows(task: Task) -> None:
    assert methods.macs(task) == pytest.approx((task.table.labels("latency_ms@raspi4")[task.test]) * 1e6)


def test_counts_rank_throughputs_the_other_way_round(task: Task) -> None:
    task.table.frame["throughput_ips@mine"] = 1000 / task.table.labels("latency_ms@eyeriss")
    rate = replace(task, target=Target("nasbench201", "throughput_ips@mine"))
    assert _tau(rate, methods.macs(rate)) == pytest.approx(1)
    assert methods.params(rate) == pytest.approx(-methods.params(task))


def test_sources_help_where_the_target_has_hardly_a_label(folder: Path) -> None:
    targets = (Target("nasbench201", "accuracy@cifar10"), Target("nasbench_macro", "accuracy@cifar10"))
    protocol = Protocol(targets, (4,), sources=targets, source_labels=20)
    drawn = draw_task(protocol, Tables(folder), targets[0], 4, seed=0)
    (source,) = drawn.sources
    assert (source.target, len(source.train)) == (targets[1], 20)
    for method in (methods.sources_alone, methods.transferred):
        assert np.isfinite(method(drawn)).all()
    with pytest.raises(ValueError, match="expected a protocol with sources, such as transfer-16, got none"):
        methods.transferred(replace(drawn, sources=()))


def test_a_stopped_run_goes_on(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    config = BenchmarkConfig(NAME, ("macs", "process"), sizes=(20, 10), seeds=2)
    calls: list[int] = []

    def stop_at_third(task: Task) -> np.ndarray:
        calls.append(task.seed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return task.truth

    with monkeypatch.context() as patch:
        patch.setitem(FROM_NUMBERS, "process", stop_at_third)
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(config, Tables(folder), path)
    with path.open("a") as stream:
        stream.write('{"protocol": "nasbench2')  # what a killed process had written
    records = run_benchmark(config, Tables(folder), path)
    assert [(r.method, r.size, r.seed) for r in records] == [
        (method, size, seed) for method in ("macs", "process") for size in (10, 20) for seed in (0, 1)
    ]
    assert [r.kendall_tau == 1 for r in records[4:]] == [True, True, False, False]  # the first two were kept
    assert len(path.read_text().splitlines()) == 8
    before = path.read_bytes()
    assert run_benchmark(config, Tables(folder), path) == records
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda task: np.where(task.truth > task.truth.min(), task.truth, np.nan), r"\(30,\), 29 of them finite"),
        (lambda task: np.full(len(task.test), np.inf), r"\(30,\), 0 of them finite"),
        (lambda task: task.truth[1:], r"\(29,\), 29 of them finite"),
        (lambda task: task.truth[:, None], r"\(30, 1\), 30 of them finite"),
    ],
)
def test_what_is_no_score_of_every_row_is_refused_and_not_stored(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Callable[[Task], FloatArray], got: str
) -> None:
    monkeypatch.setitem(FROM_NUMBERS, "process", answer)
    told = f"method process: expected a finite score for each of 30 test rows, got shape {got}"
    config = BenchmarkConfig(NAME, ("macs", "process"), sizes=(10,), seeds=1)
    with pytest.raises(ValueError, match=told):
        run_benchmark(config, Tables(folder), tmp_path / "rows.jsonl")
    assert [json.loads(line)["method"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == ["macs"]


def test_a_constant_answer_ranks_nothing(folder: Path, tmp_path: Path) -> None:
    tables = Tables(folder)
    tables["nasbench201"].frame["accuracy@cifar10"] = 3.0  # from which there is nothing to learn
    names = ("lightgbm", "process", "process-and-trees")
    records = run_benchmark(BenchmarkConfig(NAME, names, sizes=(10,), seeds=1), tables, tmp_path / "rows.jsonl")
    assert [(record.method, record.kendall_tau) for record in records] == [(name, 0.0) for name in names]


def test_other_tables_are_other_results(folder: Path, tmp_path: Path) -> None:
    config = BenchmarkConfig(NAME, ("macs",), sizes=(10,), seeds=1)
    path = tmp_path / "rows.jsonl"
    (first,) = run_benchmark(config, Tables(folder), path)
    write_table(tmp_path, rows=60)
    (second,) = run_benchmark(config, Tables(tmp_path), path)
    assert first.settings != second.settings
    assert second.test_rows == 20


def test_the_best_method_stands_first() -> None:
    record = Record("p", "s", "o", "macs", 10, 0, "", 0.5, 0.4, 9, 1.0)
    better = [replace(record, method="process", seed=seed, kendall_tau=tau) for seed, tau in enumerate((0.6, 0.8))]
    first, second = summary([record, *better], "kendall_tau")
    assert (first["method"], first["kendall_tau"], first["seeds"]) == ("process", pytest.approx(0.7), 2)
    assert first["spread"] == pytest.approx(0.1414, abs=1e-3)
    assert np.isnan(second["spread"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n', r"rows\.jsonl, line 1: expected a result of `nasrlm benchmark`"),
        ('{"a": 1}\n{"b', r"rows\.jsonl, line 1: expected a result of `nasrlm benchmark`"),
        ("a,b\n1,2", r"rows\.jsonl: expected a JSON object in every line, got b'1,2' at its end\. Move the file\."),
        ("notes", r"rows\.jsonl: expected a JSON object in every line, got b'notes' at its end"),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "rows.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        Results(tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_text() == content


def test_protocols_are_of_named_objectives_and_what_methods_need_is_known() -> None:
    assert sorted(METHODS) == sorted([*FROM_NUMBERS, *FROM_TEXTS])
    for protocol in PROTOCOLS.values():
        assert protocol.targets
        assert min(protocol.sizes) >= 2
        for target in protocol.targets:
            assert target.objective.partition("@")[2]


def test_the_command_prints_one_document(nasrlm: CommandLine, folder: Path, tmp_path: Path) -> None:  # noqa: F811
    words = ["benchmark", "--protocol", NAME, "--tables", folder, "--out", tmp_path / "rows.jsonl", "--seeds", 2]
    done = nasrlm(*words, "--methods", "params,process", "--sizes", "10,40", "--json")
    assert done.status == 0, done.stderr
    answer = json.loads(done.stdout)
    rows = answer["summary"]
    assert rows == sorted(rows, key=lambda row: (row["size"], -row["kendall_tau"]))  # the best comes first
    assert [(row["size"], row["method"]) for row in rows] == [
        (10, "params"),
        (10, "process"),
        (40, "process"),
        (40, "params"),
    ]
    assert len(answer["results"]) == 8
    table = nasrlm(*words, "--methods", "params,process", "--sizes", "10,40").stdout
    assert "process" in table
    assert "Kendall τ" in table
    assert "kendall_tau" not in table


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--protocol": "nasbench201"}, "--protocol: expected one of nasbench201-fewlabels"),
        ({"--methods": "magic"}, "--methods: expected some of params, macs"),
        ({"--methods": "rlm-adapted"}, "It needs --checkpoint."),
        ({"--methods": "transfer"}, "got 'transfer'"),
        ({"--sizes": "ten"}, "--sizes: expected numbers separated by commas, got 'ten'."),
        ({"--sizes": "1"}, "expected --sizes above 1"),
        ({"--sizes": "10,10"}, "--sizes: expected different names, got '10,10'. Name each once."),
        ({"--methods": ","}, "--methods: expected names separated by commas, got ','."),
        ({"--sizes": "5000"}, "expected 5000 train rows and 2 test rows with accuracy@cifar10, got 60 and 30."),
        ({"--tables": "nowhere"}, "nasbench201.parquet: expected a table, got no such file."),
        ({"--device": "nowhere"}, "device: expected one that torch can use here, got 'nowhere'"),
        ({"--objectives": "latency_ms@mine"}, "nasbench201.parquet: expected a column latency_ms@mine, got none."),
        ({"--objectives": "split"}, "expected numbers in column split, got 'train' in row 0."),
    ],
)
def test_what_cannot_be_run_is_refused_in_a_line(
    nasrlm: CommandLine,  # noqa: F811
    folder: Path,
    tmp_path: Path,
    changes: dict[str, object],
    message: str,
) -> None:
    options: dict[str, object] = {
        "--protocol": NAME,
        "--tables": folder,
        "--methods": "macs",
        "--out": tmp_path / "rows.jsonl",
    }
    done = nasrlm("benchmark", *[word for option in (options | changes).items() for word in option])
    assert (done.status, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


def test_other_objectives_of_the_table_may_be_ranked_by(
    nasrlm: CommandLine,  # noqa: F811
    folder: Path,
    tmp_path: Path,
) -> None:
    frame = pd.read_parquet(folder / "nasbench201.parquet")
    frame["latency_ms@mine"] = 1 / frame["latency_ms@raspi4"]
    frame.to_parquet(tmp_path / "nasbench201.parquet")
    asked = ("--objectives", "latency_ms@mine,latency_ms@raspi4", "--tables", tmp_path, "--methods", "macs")
    asked = (*asked, "--sizes", 10, "--seeds", 1, "--out", tmp_path / "rows.jsonl", "--json")
    done = nasrlm("benchmark", "--protocol", "nasbench201-devices", *asked)
    assert done.status == 0, done.stderr
    found = {row["objective"]: row["spearman_rho"] for row in json.loads(done.stdout)["summary"]}
    assert found == pytest.approx({"latency_ms@mine": -1, "latency_ms@raspi4": 1})
    done = nasrlm("benchmark", "--protocol", "transfer-16", *asked)
    told = "expected a protocol of one space with it, got transfer-16. It has no effect: leave it out."
    assert (done.status, done.stderr) == (2, f"nasrlm: --objectives: {told}\n")


@pytest.mark.parametrize(
    "asked", [("--objectives", "accuracy@cifar10,latency_ms@mine", "--sizes", 10), ("--sizes", "10,5000")]
)
def test_labels_that_the_table_lacks_are_missed_before_a_method_begins(
    nasrlm: CommandLine,  # noqa: F811
    folder: Path,
    tmp_path: Path,
    asked: tuple[object, ...],
) -> None:
    words = ("--protocol", NAME, "--tables", folder, "--methods", "macs", "--out", tmp_path / "rows.jsonl")
    assert nasrlm("benchmark", *words, *asked).status == 2
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_method_without_its_package_is_refused_before_others_begin(
    nasrlm: CommandLine,  # noqa: F811
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(METHODS, "gnn", replace(METHODS["gnn"], package="absent"))
    done = nasrlm("benchmark", "--protocol", NAME, "--tables", folder, "--out", tmp_path / "rows.jsonl")
    told = "nasrlm: --methods: gnn: expected the package absent, got none. Install nasrlm[gnn].\n"
    assert (done.status, done.stderr) == (2, told)
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_checkpoint_that_knows_a_device_does_not_take_part(
    folder: Path,
    checkpoint_folder: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    config = BenchmarkConfig("nasbench201-devices", ("rlm-adapted",), checkpoint=checkpoint_folder)
    with pytest.raises(ValueError, match="expected a checkpoint that does not know latency_ms@raspi4, got one"):
        run_benchmark(config, Tables(folder), tmp_path / "rows.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scratch", "mse", "ensemble", "taught", "pretrained"])
def test_every_language_model_answers(
    task: Task,
    name: str,
    checkpoint_folder: Path,  # noqa: F811
) -> None:
    models = LanguageModels(steps=12, checkpoint=checkpoint_folder if name == "pretrained" else None)
    scores = getattr(models, name)(task)
    assert scores.shape == task.test.shape
    assert np.isfinite(scores).all()


@pytest.mark.slow
def test_the_graph_network_learns_what_is_behind_the_labels(task: Task) -> None:
    pytest.importorskip("torch_geometric", reason="needs the extra gnn")
    from studies.benchmark.graph_network import gnn

    assert _tau(task, gnn(task)) > 0.5


def _tau(task: Task, scores: np.ndarray) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(scores, task.truth).statistic)


@pytest.mark.usefixtures("learning_little")
def test_adapted_models_read_a_table_once_and_learn_from_as_many_labels(
    task: Task,
    checkpoint_folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[set[float]] = []

    def adapt(start: Checkpoint, pool: Pool, objective: str, labels: FloatArray) -> Checkpoint:
        assert len(pool.texts) == enough > len(task.table.frame)  # others are drawn
        used.append(set(labels[np.isfinite(labels)].tolist()))
        return adaptation.adapt(start, pool, objective, labels)

    enough = len(task.table.frame) + 5
    monkeypatch.setattr(language_models, "POOL", enough)
    monkeypatch.setattr(graph_network_fit, "STEPS", (5, 5))
    monkeypatch.setattr(language_models, "adapt", adapt)
    models = LanguageModels(checkpoint=checkpoint_folder)
    given = models.adapted(task)
    monkeypatch.setattr(language_models, "make_pool", None)  # is not called again
    chosen = models.adapted_by_choice(task)
    assert given.shape == chosen.shape == task.test.shape
    assert used[0] == set(task.labels.tolist())
    assert used[1] != used[0]
    assert len(used[1]) == len(used[0])
    assert used[1] <= set(task.table.labels(task.target.objective)[task.table.split("train", task.target.objective)])
