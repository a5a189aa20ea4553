"""Read the networks given to a verb, as words or as a table, and convert each to a text."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from converters.bulk import to_onnx_texts
from converters.tables.columns import WORDS
from nasrlm.cli.networks import Kind, kind_of, parse_shapes, read_each, read_text
from nasrlm.cli.options import space_or_none
from spaces import get_space

PLAIN = ("string", "integer", "floating", "boolean", "empty")  # columns that every kind of table can hold


@dataclass(frozen=True)
class Inputs:
    """The given networks; every list has one element per network.

    Attributes:
        names: as the user gave them.
        texts: ONNX texts.
        spaces: names of spaces, "" if not known.
        rows: descriptions of the networks by column, for a table of results.
        numbers: of their rows in the given table, for error messages; empty without a table.
        left_out: columns of the given table that are not in ``rows`` because they hold neither numbers nor words.
        failed: why files and modules could not be converted, by name; they are in no list.
    """

    names: list[str]
    texts: list[str]
    spaces: list[str]
    rows: list[dict[Hashable, Any]]
    numbers: Sequence[Any] = ()
    left_out: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def notations(self) -> list[str]:
        """Return the notation of each network; "" for one that was given as a text."""
        has_notation = [isinstance(row.get("architecture"), str) and not row.get("text") for row in self.rows]
        return [name if has else "" for name, has in zip(self.names, has_notation, strict=True)]

    def at(self, indices: Sequence[int]) -> Inputs:
        """Return some of the networks."""
        return replace(
            self,
            names=[self.names[index] for index in indices],
            texts=[self.texts[index] for index in indices],
            spaces=[self.spaces[index] for index in indices],
            rows=[self.rows[index] for index in indices],
            numbers=[self.numbers[index] for index in indices] if self.numbers else (),
        )


def read_inputs(
    given: Sequence[str] | None,
    table: Path | None,
    space: str | None,
    input_shape: Sequence[str] | None,
) -> Inputs:
    """Read architectures, files with ONNX text or models, torch modules, or all rows of a table.

    Files and modules that cannot be converted are left out, if others can.

    Args:
        given: the networks, unless there is a table.
        table: the table, unless networks are given.
        space: of the networks.
        input_shape: of each input of models and modules that do not give it.

    Raises:
        ValueError: neither or both of networks and table were given, a notation is malformed, a file cannot be found,
            or none can be converted.
    """
    if bool(given) == (table is not None):
        raise ValueError(f"input: expected architectures or --table, got {'both' if given else 'neither'}. See --help.")
    names = list(given or [])
    kinds = [kind_of(name, space if input_shape is None else None) for name in names]  # architectures need no shape
    if input_shape is not None and not any(kind in (Kind.MODEL, Kind.MODULE) for kind in kinds):
        got = table or ", ".join(names)
        raise ValueError(f"--input-shape: expected model.onnx or pkg.module:factory with it, got {got}.")
    if table is not None:
        return _read_table(table, space)
    if Kind.ARCHITECTURE not in kinds:
        shapes = parse_shapes(input_shape)
        names, texts, failed = read_each(names, lambda name: read_text(name, shapes), "convert")
        _refuse_notation(names, texts, space)
        return Inputs(names, texts, [space or ""] * len(names), _file_rows(names, texts, space), failed=failed)
    notation = names[kinds.index(Kind.ARCHITECTURE)]
    if space is None:
        raise ValueError(
            f"{notation}: expected architectures with --space, files ending in .txt, .onnxtxt, .onnx, "
            "or pkg.module:factory."
        )
    if set(kinds) != {Kind.ARCHITECTURE}:
        raise ValueError(
            f"{notation}: expected files, or modules with --input-shape, or else architectures of {space}, got both. "
            "Give one kind at a time."
        )
    chosen = get_space(space)
    parsed = [chosen.parse(name) for name in names]
    texts = to_onnx_texts(chosen, parsed, measured=True, progress=True)
    rows: list[dict[Hashable, Any]] = [{"space": chosen.address, "architecture": name} for name in names]
    return Inputs(names, texts, [chosen.address] * len(names), rows)


def _refuse_notation(names: Sequence[str], texts: Sequence[str], space: str | None) -> None:
    """Refuse files that list architectures, as ``nasrlm sample`` prints them, which would be taken for one text."""
    chosen = None if space is None else space_or_none(space)
    if chosen is None:
        return
    for name, text in zip(names, texts, strict=True):
        first = text.partition("\n")[0].strip()
        if not first:
            continue
        try:
            chosen.parse(first)
        except ValueError:
            continue
        raise ValueError(
            f"{name}: expected the ONNX text of one network, got architectures of {chosen.name} in its first line. "
            "Give these as arguments, or in a table with a column architecture."
        )


def _read_table(table: Path, space: str | None) -> Inputs:
    from pandas.api.types import infer_dtype  # here: takes half a second

    from studies.tables.rows import read_rows, row_names, table_texts

    frame = read_rows(table, space)
    if frame.empty:
        raise ValueError(f"{table}: expected rows, got none.")
    spaces = frame["space"].fillna("").astype(str).tolist() if "space" in frame else [""] * len(frame)
    texts = table_texts(frame, table, progress=True)
    kinds = {name: infer_dtype(frame[name]) for name in frame}
    left_out = [str(name) for name, kind in kinds.items() if name not in WORDS and kind not in PLAIN]
    rows = frame.drop(columns=left_out).to_dict("records")
    return Inputs(row_names(frame), texts, spaces, rows, frame.index.tolist(), left_out)


def _file_rows(names: Sequence[str], texts: Sequence[str], space: str | None) -> list[dict[Hashable, Any]]:
    of_space: dict[Hashable, Any] = {"space": space} if space else {}
    return [{"file": name, "text": text} | of_space for name, text in zip(names, texts, strict=True)]
