"""The verb benchmark: compare methods on identical rows, from few labels."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nasrlm.cli.options import DeviceOption, JsonOption, listed
from nasrlm.cli.output import print_json, print_table, say, warn
from nasrlm.cli.verbs import LIST
from studies.benchmark.protocol import PROTOCOLS, get_protocol
from studies.benchmark.registry import METHODS
from studies.benchmark.results import summary

# Headers in the table for columns of the summary whose names are not readable.
HEADS = {"size": "labels", "kendall_tau": "Kendall τ", "spearman_rho": "Spearman ρ", "test_rows": "test rows"}


def run(
    protocol: Annotated[str, typer.Option(help=f"One of {', '.join(PROTOCOLS)}.")],
    tables: Annotated[Path, typer.Option(help="Folder with a table <space>.parquet for each space.")] = Path(
        "../shared/data"
    ),
    methods: Annotated[
        str | None,
        typer.Option(
            metavar=LIST, help=f"Methods, separated by commas; default: all possible ones of {', '.join(METHODS)}."
        ),
    ] = None,
    objectives: Annotated[
        str | None,
        typer.Option(
            metavar=LIST,
            help="Columns of the table to rank by, separated by commas, such as latencies on other devices; default: "
            "the protocol's.",
        ),
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(metavar=LIST, help="Numbers of labels, separated by commas; default: the protocol's.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of random draws of the labelled rows.")] = 5,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps of each language model.")] = 600,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Checkpoint folder for rlm-taught, rlm-pretrained, rlm-adapted and rlm-adapted-active."),
    ] = None,
    device: DeviceOption = "cpu",
    out: Annotated[
        Path | None, typer.Option(help="File of results, one JSON line each; default: runs/benchmark/<protocol>.jsonl.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare methods that rank test rows of a space from a few labels; the same command resumes a stopped run."""
    ranked = listed(objectives, "--objectives")
    chosen = get_protocol(protocol, ranked)

    from studies.benchmark.run import BenchmarkConfig, known_targets, run_benchmark  # here: these take seconds
    from studies.benchmark.task import Tables

    config = BenchmarkConfig(
        protocol,
        methods=listed(methods, "--methods"),
        objectives=ranked,
        sizes=_numbers(sizes),
        seeds=seeds,
        steps=steps,
        checkpoint=checkpoint,
        device=device,
    )
    path = out or Path("runs/benchmark") / f"{protocol}.jsonl"
    if known := known_targets(chosen, checkpoint):
        warn(f"the checkpoint knows {', '.join(known)} and may have been trained on labels of test rows")
    records = run_benchmark(config, Tables(tables), path, progress=True)
    rows = summary(records, chosen.judge)
    if json:
        results = [asdict(record) for record in records]
        print_json({"protocol": protocol, "file": str(path), "summary": rows, "results": results})
        return
    columns = [name for name in rows[0] if name != "space" or len({row["space"] for row in rows}) > 1]
    heads = [HEADS.get(name, name) for name in columns]
    print_table(heads, [[row[name] for name in columns] for row in rows], title=protocol)
    say(f"{len(records):,} results: {path}")


def _numbers(sizes: str | None) -> tuple[int, ...]:
    numbers = listed(sizes, "--sizes")
    try:
        return tuple(map(int, numbers))
    except ValueError as e:
        raise ValueError(f"--sizes: expected numbers separated by commas, got {sizes!r}.") from e
