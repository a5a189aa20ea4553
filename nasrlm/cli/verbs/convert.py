"""The verb convert: the ONNX text of a network, of several, or of a whole table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import onnx
import typer

from converters import to_model
from converters.errors import check_ending
from converters.tables.columns import TEXT
from converters.tables.parts import errors_of
from converters.tables.stream import StreamConfig
from converters.text import prelude
from nasrlm.cli.idle_options import refuse_given
from nasrlm.cli.inputs import read_inputs
from nasrlm.cli.networks import NETWORK_ARGUMENT, canonical_text, count_tokens, read_network
from nasrlm.cli.options import CheckpointOption, InputShapeOption, JsonOption, SpaceOption
from nasrlm.cli.output import check_table_out, print_json, say, warn, write_rows
from nasrlm.cli.whole_tables import (
    ArchitecturesOption,
    ResumeOption,
    WorkersEngineOption,
    WorkersOption,
    checked_out,
    convert_whole_table,
)
from nasrlm.files import TABLE_ENDINGS, check_folder, check_not_read, to_json, write_atomically


def run(
    context: typer.Context,
    architectures: Annotated[list[str] | None, NETWORK_ARGUMENT] = None,
    space: SpaceOption = None,
    table: ArchitecturesOption = None,
    input_shape: InputShapeOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write: a runnable .onnx model, or .onnxtxt text with its prelude; for several networks, a "
            "table of the texts that a model reads (.parquet, .csv or .jsonl); with --table, .parquet.",
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
        written = checked_out(context, "convert", architectures, out)
        return convert_whole_table(StreamConfig(table, written, space, workers, engine, resume), "convert", json=json)
    if not architectures or workers is not None or resume:
        raise ValueError("convert: expected an architecture, or --table with --workers or --resume. See --help.")
    refuse_given(context, ["engine"], "--table", "an architecture")
    if len(architectures) > 1 or (out is not None and out.suffix in TABLE_ENDINGS):
        refuse_given(context, ["checkpoint"], "one architecture", "several")
        return _write_several(architectures, space, input_shape, out, json=json)
    if not json:
        refuse_given(context, ["checkpoint"], "--json", "none")
    (architecture,) = architectures
    if out is not None:
        _check_network_out(out, architecture)
    text = canonical_text(read_network(architecture, space, input_shape, "convert"), architecture)
    if out is not None:
        _write_network(text, out)
    if json:
        print_json({"text": text, "tokens": count_tokens([text], checkpoint)[0]})
    elif out is None:
        say(text)


def _write_several(
    given: list[str], space: str | None, input_shape: list[str] | None, out: Path | None, *, json: bool
) -> None:
    if out is None:
        raise ValueError(
            f"convert: expected --out with a table (.parquet, .csv or .jsonl) for {len(given)} networks, got none."
        )
    check_table_out(out, *map(Path, given))
    inputs = read_inputs(given, None, space, input_shape, leave_out=True)
    write_rows([row | {TEXT: text} for row, text in zip(inputs.rows, inputs.texts, strict=True)], out)
    _list_failed(inputs.failed, len(given), errors_of(out))
    if json:
        print_json({"rows": len(inputs.rows), "failed": len(inputs.failed)})
    else:
        say(f"{len(inputs.rows):,} rows: {out}")


def _list_failed(failed: Mapping[str, str], total: int, errors: Path) -> None:
    """Write which networks could not be converted, and why, and warn; or remove what an earlier run wrote."""
    if not failed:
        errors.unlink(missing_ok=True)
        return
    lines = [to_json({"file": name, "reason": reason}) for name, reason in failed.items()]
    write_atomically(errors, "".join(f"{line}\n" for line in lines).encode())
    warn(f"{len(failed):,} of {total:,} networks failed, with reasons in {errors}")


def _check_network_out(out: Path, given: str) -> None:
    """Check, before a network is read, that its text or model can be written to ``out``."""
    check_ending(out, ".onnx", ".onnxtxt")
    check_not_read(out, given)
    check_folder(out.parent)


def _write_network(text: str, out: Path) -> None:
    model: onnx.ModelProto = to_model(text)
    is_text = out.suffix == ".onnxtxt"
    write_atomically(out, f"{text}\n{prelude()}".encode() if is_text else model.SerializeToString())
