"""The verb convert: the ONNX text of a network, of several, or of a whole table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import onnx
import typer

from converters import to_model
from converters.errors import check_ending
from converters.tables.stream import StreamConfig
from converters.text import prelude
from nasrlm.cli.files_to_table import convert_listed, convert_several, lists_files
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.networks import NETWORK_ARGUMENT, canonical_text, count_tokens, parse_shapes, read_network
from nasrlm.cli.options import CheckpointOption, InputShapeOption, JsonOption, SpaceOption
from nasrlm.cli.output import print_json, say
from nasrlm.cli.whole_tables import (
    ResumeOption,
    WorkersEngineOption,
    WorkersOption,
    checked_out,
    convert_whole_table,
)
from nasrlm.files import TABLE_ENDINGS, check_folder, check_not_read, write_atomically


def run(
    context: typer.Context,
    architectures: Annotated[list[str] | None, NETWORK_ARGUMENT] = None,
    space: SpaceOption = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            help="Parquet, CSV or JSONL file with a column architecture, or with a column file that names models or "
            "modules.",
        ),
    ] = None,
    input_shape: InputShapeOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write: a runnable .onnx model, or .onnxtxt text with its prelude; for several networks, a "
            "table of the texts that a model reads (.parquet, .csv or .jsonl); for architectures of a table, .parquet.",
        ),
    ] = None,
    workers: WorkersOption = None,
    resume: ResumeOption = False,
    engine: WorkersEngineOption = "process",
    checkpoint: CheckpointOption = None,
    json: JsonOption = False,
) -> None:
    """Print the canonical ONNX text of a network or write it to a file; or convert several, or a table."""
    if table is not None:
        if out is not None and not architectures and lists_files(table):
            refuse_given(context, ["workers", "resume", "engine", "checkpoint"], "architectures", "files")
            return convert_listed(table, space, input_shape, out, json=json)
        written = checked_out(context, "convert", architectures, out)
        return convert_whole_table(StreamConfig(table, written, space, workers, engine, resume), "convert", json=json)
    if not architectures or workers is not None or resume:
        raise ValueError("convert: expected an architecture, or --table with --workers or --resume. See --help.")
    refuse_given(context, ["engine"], "--table", "an architecture")
    if len(architectures) > 1 or (out is not None and out.suffix.lower() in TABLE_ENDINGS):
        refuse_given(context, ["checkpoint"], "one architecture", "several")
        return convert_several(architectures, space, input_shape, out, json=json)
    if not json:
        refuse_given(context, ["checkpoint"], "--json", "none")
    (architecture,) = architectures
    if out is not None:
        _check_network_out(out, architecture)
    text = canonical_text(read_network(architecture, space, parse_shapes(input_shape), "convert"), architecture)
    if out is not None:
        _write_network(text, out)
    if json:
        print_json({"text": text, "tokens": count_tokens([text], checkpoint)[0]})
    elif out is None:
        say(text)


def _check_network_out(out: Path, given: str) -> None:
    """Check, before a network is read, that its text or model can be written to ``out``."""
    check_ending(out, ".onnx", ".onnxtxt")
    check_not_read(out, given)
    check_folder(out.parent)


def _write_network(text: str, out: Path) -> None:
    model: onnx.ModelProto = to_model(text)
    is_text = out.suffix.lower() == ".onnxtxt"
    write_atomically(out, f"{text}\n{prelude()}".encode() if is_text else model.SerializeToString())
