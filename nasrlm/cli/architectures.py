"""Verbs about networks themselves: spaces, sample, convert, stats, measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import onnx
import typer
from tqdm import tqdm

from converters import Graph, graph_to_onnx_text, to_model
from converters.bulk import to_onnx_texts
from converters.convert import checked
from converters.counts import derive_counts
from converters.errors import check_ending
from converters.runtime import machine_description, measure_latencies
from converters.statistics import statistics
from converters.stream import StreamConfig
from converters.text import prelude
from nasrlm.checkpoint_folder import folder_or_released, read_tokenizer
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.inputs import (
    POOL,
    ArchitecturesArgument,
    CheckpointOption,
    InputShapeOption,
    SpaceOption,
    TableOption,
    read_inputs,
    require_space,
)
from nasrlm.cli.networks import NETWORK_ARGUMENT, read_network
from nasrlm.cli.output import (
    JsonOption,
    SeedOption,
    check_table_out,
    first_lines,
    print_json,
    print_table,
    say,
    some,
    warn,
)
from nasrlm.cli.whole_tables import convert_whole_table
from nasrlm.files import check_folder, check_not_read, write_atomically, write_table
from nasrlm.objective import Objective
from spaces import SearchSpace, UnknownSpaceError, get_space, space_names
from spaces.drawing import HELD_OUT_PERCENT, draw

WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, help="Of a table: processes; as many as are of use if left out.")
]
ArchitecturesOption = Annotated[
    Path | None, typer.Option("--table", help="Parquet, CSV or JSONL with a column architecture.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Of a table: go on with a run that was killed.")]
WorkersEngineOption = Annotated[str, typer.Option("--engine", help="Of a table: process, or ray.")]
TIMED_AT_ONCE = 8  # networks, which a killed run may lose
OF_NETWORKS = ("checkpoint", "input_shape")  # options that say nothing of a table


def register(app: typer.Typer) -> None:
    """Add the verbs of this file."""
    app.command("spaces")(list_spaces)
    for verb in (sample, convert, stats, measure):
        app.command()(verb)


def list_spaces(json: JsonOption = False) -> None:
    """List the search spaces, their sizes and published objectives."""
    spaces = _open_spaces()
    if json:
        print_json([{"name": s.name, "size": s.size, "objectives": list(s.objectives)} for s in spaces])
    else:
        print_table(["space", "size", "objectives"], [[s.name, s.size, ", ".join(s.objectives)] for s in spaces])


def sample(
    context: typer.Context,
    space: Annotated[
        list[str] | None,
        typer.Option("--space", help="A registered space or path/to/file.py:ClassName; with --out, may be repeated."),
    ] = None,
    count: Annotated[int, typer.Option("-n", min=1, help="Draws of each space; --out writes equal ones once.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a table with splits, each once: .parquet, .csv or .jsonl.")
    ] = None,
    held_out: Annotated[
        int,
        typer.Option(min=1, max=40, help="With --out: percent of the networks in each of the splits valid and test."),
    ] = HELD_OUT_PERCENT,
    choose: Annotated[
        Literal["random", "active"],
        typer.Option("--choose", help="random, or active: those whose measurements would say most about all others."),
    ] = "random",
    pool: Annotated[int, typer.Option(min=1, help="With --choose active: networks that are chosen among.")] = POOL,
    measured: Annotated[
        Path | None,
        typer.Option(help="With --choose active: a table of networks that are measured already; others are chosen."),
    ] = None,
    checkpoint: CheckpointOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Draw architectures, one a line in the space's published notation; or a table of them to learn from."""
    if choose == "random":
        refuse_given(context, ["pool", "checkpoint", "measured"], "--choose active", "none")
    if out is not None:
        refuse_given(context, ["choose"], "no --out", "one")
        _write_drawn(space or [], count, held_out, seed, out, json=json)
        return
    refuse_given(context, ["held_out"], "--out", "none")
    if space and len(space) > 1:
        raise ValueError(f"sample: expected one --space, or --out for a table of several, got {', '.join(space)}.")
    chosen = require_space(space[0] if space else None, "sample")
    if choose == "active":
        drawn = _most_telling(chosen, count, pool, seed, checkpoint, measured)
    else:
        rng = np.random.default_rng(seed)
        drawn = [chosen.format(chosen.sample(rng)) for _ in range(count)]
    if json:
        print_json(drawn)
    else:
        say("\n".join(drawn))


def convert(
    context: typer.Context,
    architecture: Annotated[str | None, NETWORK_ARGUMENT] = None,
    space: SpaceOption = None,
    table: ArchitecturesOption = None,
    input_shape: InputShapeOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write a runnable .onnx model, or an .onnxtxt text with its prelude; of a table, .parquet."
        ),
    ] = None,
    workers: WorkersOption = None,
    resume: ResumeOption = False,
    engine: WorkersEngineOption = "process",
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Print the canonical ONNX text of a network, or write it as a file; or convert a whole table."""
    if table is not None:
        if architecture is not None or out is None:
            raise ValueError("convert --table: expected --out and no architecture. See --help.")
        refuse_given(context, OF_NETWORKS, "an architecture", "--table")
        return convert_whole_table(StreamConfig(table, out, space, workers, engine, resume), "convert", json=json)
    if architecture is None or workers is not None or resume:
        raise ValueError("convert: expected an architecture, or --table with --workers or --resume. See --help.")
    refuse_given(context, ["engine"], "--table", "an architecture")
    if not json:
        refuse_given(context, ["checkpoint"], "--json", "none")
    if out is not None:
        _check_network_out(out, architecture)
    text = _text(read_network(architecture, space, input_shape, "convert"), architecture)
    if out is not None:
        _write_network(text, out)
    if json:
        print_json({"text": text, "tokens": _count_tokens([text], checkpoint)[0]})
    elif out is None:
        say(text)


def stats(
    context: typer.Context,
    architectures: Annotated[list[str] | None, NETWORK_ARGUMENT] = None,
    space: SpaceOption = None,
    table: ArchitecturesOption = None,
    input_shape: InputShapeOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Of a table: write it with its counts, .parquet.")] = None,
    latency: Annotated[
        bool, typer.Option("--latency", help="Of a table: also time every network in ONNX Runtime on this machine.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Timed runs of each network.")] = 20,
    texts: Annotated[
        bool, typer.Option("--texts", help="Of a table: also write the text that is predicted from, to train on.")
    ] = False,
    workers: WorkersOption = None,
    resume: ResumeOption = False,
    engine: WorkersEngineOption = "process",
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Count parameters, multiply-accumulates and more; live_ counts are those of the canonical graph."""
    if table is not None:
        if architectures or out is None:
            raise ValueError("stats --table: expected --out and no architecture. See --help.")
        refuse_given(context, OF_NETWORKS, "an architecture", "--table")
        if not latency:
            refuse_given(context, ["repeats"], "--latency", "none")
        counts = derive_counts(repeats if latency else None, texts)
        workers = 1 if latency and workers is None else workers  # they would slow each other down
        config = StreamConfig(table, out, space, workers, engine, resume, derivation=counts)
        if latency:
            config = replace(config, chunk_rows=TIMED_AT_ONCE, part_chunks=1)
        return convert_whole_table(config, "stats", json=json)
    if not architectures or out is not None or latency or texts or workers is not None or resume:
        raise ValueError("stats: expected an architecture, or --table with --out. See --help.")
    refuse_given(context, ["engine", "repeats"], "--table", "an architecture")
    graphs = [read_network(name, space, input_shape, "stats") for name in architectures]
    tokens = _count_tokens(list(map(_text, graphs, architectures)), checkpoint)
    named = zip(architectures, graphs, tokens, strict=True)
    counted = [_counts(graph, name) | {"tokens": count} for name, graph, count in named]
    if len(counted) == 1:
        _print_counts(counted[0], json=json)
        return
    rows = [{"architecture": name, **counts} for name, counts in zip(architectures, counted, strict=True)]
    if json:
        print_json(rows)
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def measure(
    architectures: ArchitecturesArgument = None,
    space: SpaceOption = None,
    table: TableOption = None,
    input_shape: InputShapeOption = None,
    threads: Annotated[int, typer.Option(min=1, max=1024, help="Threads of ONNX Runtime.")] = 1,
    repeats: Annotated[int, typer.Option(min=1, help="Timed runs of each network.")] = 50,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write a table, which is replaced: .parquet, .csv or .jsonl.")
    ] = None,
    objective: Annotated[
        str, typer.Option(help="What the latency is called in the table, for `nasrlm adapt`: latency_ms@context.")
    ] = "latency_ms@here",
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Time networks in ONNX Runtime on this machine: warm, interleaved, median and quartiles."""
    if Objective.parse(objective).unit != "ms":
        raise ValueError(f"--objective: expected a name in milliseconds, such as latency_ms@mine, got {objective}.")
    if out is not None:
        check_table_out(out, table)
    inputs = read_inputs(architectures, table, space, input_shape)
    names = [f"{table}, row {number}" for number in inputs.numbers] or inputs.names
    options = {"threads": threads, "repeats": repeats, "seed": seed}
    latencies = measure_latencies(inputs.texts, **options, names=names, progress=True)
    machine = machine_description()
    measured = [
        {
            objective: latency.median_ms,
            "latency_q25_ms": latency.iqr_ms[0],
            "latency_q75_ms": latency.iqr_ms[1],
            "repeats": latency.repeats,
            "threads": threads,
            **{f"machine_{key}": value for key, value in machine.items()},
        }
        for latency in latencies
    ]
    if out is not None:
        again = [name for name in measured[0] if name in inputs.rows[0]]
        if lost := [*inputs.left_out, *again]:
            warn(f"{out}: of the table it has nothing of {some(lost)}.")
        _write_rows([x | y for x, y in zip(inputs.rows, measured, strict=True)], out)
    if json:
        spaces = [{"space": space} if space else {} for space in inputs.spaces]
        rows = zip(inputs.names, spaces, measured, strict=True)
        print_json([{"architecture": name} | space | row for name, space, row in rows])
    else:
        columns = [objective, "latency_q25_ms", "latency_q75_ms"]
        title = ", ".join(f"{key} {value}" for key, value in machine.items())
        named = zip(first_lines(inputs.names, inputs.numbers), measured, strict=True)
        cells = [[name, *[row[column] for column in columns]] for name, row in named]
        print_table(["architecture", *columns], cells, title)


def _text(faithful: Graph, name: str) -> str:
    return checked(graph_to_onnx_text(faithful), name)


def _print_counts(counts: dict[str, int], *, json: bool) -> None:
    if json:
        print_json(counts)
    else:
        print_table(["count", "value"], list(counts.items()))


def _counts(faithful: Graph, name: str) -> dict[str, int]:
    try:
        return asdict(statistics(faithful))
    except ValueError as e:
        raise ValueError(f"{name}: {e}") from e


def _count_tokens(texts: Sequence[str], checkpoint: Path | None) -> list[int]:
    tokenizer = read_tokenizer(folder_or_released(checkpoint))
    return [len(token_ids) for token_ids in tokenizer.to_ids(texts)]


def _most_telling(
    space: SearchSpace[Any], count: int, pool: int, seed: int, checkpoint: Path | None, measured: Path | None
) -> Sequence[str]:
    """Different architectures of a pool, those that would tell most of all others first."""
    from nasrlm.checkpoint import Checkpoint  # here: a second and more, for what draws at random
    from nasrlm.pool import choose_diverse, make_pool
    from studies.tables import parsed_rows, read_rows

    loaded = Checkpoint.from_pretrained(checkpoint)
    known: dict[str, Any] = {}
    if measured is not None:
        if "architecture" not in (frame := read_rows(measured, space.address)):
            raise ValueError(f"{measured}: --measured: expected a column architecture, got texts.")
        known = {space.architecture_key(row): row for row in parsed_rows(space, frame, measured)}
    drawn = [space.parse(row.architecture) for row in draw(space, pool, seed)]
    new = [architecture for architecture in drawn if space.architecture_key(architecture) not in known]
    if count > len(new):
        raise ValueError(
            f"sample: expected -n up to {len(new):,}, as many as --pool draws{' that are not measured' * bool(known)}, "
            f"got {count:,}."
        )
    texts = to_onnx_texts(space, [*known.values(), *new], measured=True, progress=True)
    everyone, first = make_pool(loaded, texts, progress=True, space=space.address), len(known)
    best = choose_diverse(everyone, np.arange(first, len(texts)), count, measured=range(first))
    return [space.format(new[row - first]) for row in best.tolist()]


def _write_drawn(names: list[str], count: int, held_out: int, seed: int, out: Path, *, json: bool) -> None:
    check_table_out(out)
    spaces = {name: require_space(name, "sample") for name in names}
    if not spaces:
        raise ValueError("sample: expected --space, got none. `nasrlm spaces` lists them.")
    rows = [
        {"space": name, **drawn._asdict()}
        for name, space in spaces.items()
        for drawn in tqdm(draw(space, count, seed, held_out_percent=held_out), f"sample {name}", count)
    ]
    _write_rows(rows, out)
    if json:
        print_json({"rows": len(rows)})
    else:
        say(f"{len(rows):,} different architectures of {count * len(spaces):,} drawn: {out}")


def _write_rows(rows: Sequence[Mapping[Any, Any]], out: Path) -> None:
    import pandas as pd  # here: it takes half a second

    write_table(pd.DataFrame(rows), out)


def _open_spaces() -> list[SearchSpace[Any]]:
    """All spaces by name; one that an installed package registers and that fails to load is only reported."""
    spaces = []
    for name in space_names():
        try:
            spaces.append(get_space(name))
        except UnknownSpaceError as e:
            warn(str(e))
    return spaces


def _check_network_out(out: Path, given: str) -> None:
    """Before a network is read that is to be written there."""
    check_ending(out, ".onnx", ".onnxtxt")
    check_not_read(out, given)
    check_folder(out.parent)


def _write_network(text: str, out: Path) -> None:
    model: onnx.ModelProto = to_model(text)
    is_text = out.suffix == ".onnxtxt"
    write_atomically(out, f"{text}\n{prelude()}".encode() if is_text else model.SerializeToString())
