"""What commands are given: spaces, architectures, tables, checkpoints. Everything becomes texts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import studies
from converters import (
    Graph,
    OnnxModelError,
    OnnxTextError,
    graph_to_onnx_text,
    model_to_graph,
    model_to_onnx_text,
    to_model,
)
from converters.bulk import to_onnx_texts
from converters.convert import checked
from converters.errors import instead_of_file
from converters.graph import Shape
from converters.table_columns import WORDS
from converters.text import prelude
from converters.torch_module import export_module
from nasrlm.cli.users_module import users_module
from nasrlm.named_function import FUNCTION_NAME
from spaces import UnknownSpaceError, get_space
from spaces.space import SearchSpace

ONNX_TEXT_ENDING = ".onnxtxt"
TEXT_ENDINGS = (".txt", ONNX_TEXT_ENDING)
MODEL_ENDINGS = (".onnx",)
LARGEST_SIZE = 2**31 - 1  # of an axis
PLAIN = ("string", "integer", "floating", "boolean", "empty")  # columns that every kind of table can hold
RECIPES = Path(studies.__file__).parent / "recipes"  # that ship with the package


@dataclass(frozen=True)
class Inputs:
    """What was given, a network an element of each list.

    Attributes:
        names: as the user gave them.
        texts: ONNX text.
        spaces: empty where none is known.
        rows: what describes them in a table, by column.
        numbers: of their rows in the table that was given, which are told in errors; none without a table.
        left_out: columns of that table that ``rows`` lack, for they hold neither numbers nor words.
    """

    names: list[str]
    texts: list[str]
    spaces: list[str]
    rows: list[dict[Hashable, Any]]
    numbers: Sequence[Any] = ()
    left_out: Sequence[str] = ()

    @property
    def notations(self) -> list[str]:
        """Return the notation of each network; empty of one that was given as a text."""
        has_notation = [isinstance(row.get("architecture"), str) and not row.get("text") for row in self.rows]
        return [name if has else "" for name, has in zip(self.names, has_notation, strict=True)]


def ending_of(path: Path | str) -> str:
    """Return a file name's suffix in small letters."""
    return Path(path).suffix.lower()


def parse_shape(text: str) -> tuple[int, ...]:
    """Sizes separated by commas.

    Raises:
        ValueError: these are none.
    """
    sizes = text.split(",")
    if not all(size.strip().isdecimal() and 0 < int(size) <= LARGEST_SIZE for size in sizes):
        raise ValueError(f"--input-shape: expected sizes such as 1,3,32,32, got {text!r:.60}.")
    return tuple([int(size) for size in sizes])


def named_graph(name: str, shape: Shape | None, place: str) -> Graph:
    """The faithful graph of the torch module that ``pkg.module:factory`` makes.

    Args:
        name: of the function.
        shape: of the module's input, which it does not say itself.
        place: with which the message begins where there is no shape.

    Raises:
        ValueError: no shape or no such function, it makes no module, or the module cannot be exported.
    """
    if shape is None:
        raise ValueError(f"{place}: expected --input-shape, such as 1,3,32,32, got none.")
    module = users_module(name)
    try:
        return model_to_graph(export_module(module, shape))
    except OnnxModelError as e:
        raise OnnxModelError(f"{name}: {e}") from e


def require_space(name: str | None, what: str) -> SearchSpace[Any]:
    """The space that ``--space`` names.

    Raises:
        ValueError: there is no such option, or no such space.
    """
    if name is None:
        raise ValueError(f"{what}: expected --space, got none. `nasrlm spaces` lists them.")
    return get_space(name)


def config_file(given: Path) -> Path:
    """A config's file: as given, or that of the recipe of this name.

    Raises:
        ValueError: a name of neither.
    """
    if given.suffix or given.is_file():  # a folder may have a recipe's name
        return given
    recipes = {path.stem: path for path in sorted(RECIPES.glob("*.yaml"))}
    if str(given) not in recipes:
        raise ValueError(f"--config: expected a YAML file or a recipe, {', '.join(recipes)}, got {given}.")
    return recipes[str(given)]


def read_inputs(
    given: Sequence[str] | None, table: Path | None, space: str | None, input_shape: str | None = None
) -> Inputs:
    """Texts of architectures, of files with ONNX text or models, of torch modules, or of all rows of a table.

    Raises:
        ValueError: nothing or both were given, a notation is malformed, a file cannot be read.
    """
    if bool(given) == (table is not None):
        raise ValueError("input: expected architectures or --table, and not both. See --help.")
    module_space = space if input_shape is None else None  # what has a shape is no architecture
    if input_shape is not None and not any(_has_shape(name, module_space) for name in given or ()):
        got = table or ", ".join(given or ())
        raise ValueError(f"--input-shape: expected model.onnx or pkg.module:factory with it, got {got}.")
    if table is not None:
        return _read_table(table, space)
    names = list(given or [])
    shape = None if input_shape is None else parse_shape(input_shape)
    is_file = [_has_shape(name, module_space) or ending_of(name) in TEXT_ENDINGS for name in names]
    if all(is_file):
        texts = [read_text(name, shape) for name in names]
        _refuse_notation(names, texts, space)
        return Inputs(names, texts, [space or ""] * len(names), _file_rows(names, texts, space))
    if any(is_file) and space is not None:
        other = names[is_file.index(False)]
        raise ValueError(
            f"{other}: expected files, or modules with --input-shape, or else architectures of {space}, got both. "
            "Ask about one kind at a time."
        )
    if space is None:
        endings = ", ".join(TEXT_ENDINGS + MODEL_ENDINGS)
        raise ValueError(
            f"{names[0]}: expected architectures with --space, files ending in {endings}, or pkg.module:factory."
        )
    chosen = get_space(space)
    parsed = [chosen.parse(name) for name in names]
    texts = to_onnx_texts(chosen, parsed, measured=True, progress=True)
    rows: list[dict[Hashable, Any]] = [{"space": chosen.address, "architecture": name} for name in names]
    return Inputs(names, texts, [chosen.address] * len(names), rows)


def _refuse_notation(names: Sequence[str], texts: Sequence[str], space: str | None) -> None:
    """Complain of files that list architectures, as ``nasrlm sample`` prints them: they would be read as one text."""
    if space is None:
        return
    try:
        chosen = get_space(space)
    except UnknownSpaceError:
        return  # one of texts alone
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
    from pandas.api.types import infer_dtype  # here: it takes half a second

    from studies.tables import read_rows, row_names, table_texts

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


def _has_shape(name: str, space: str | None) -> bool:
    """Whether this is a model's file, or a function that makes a torch module, which an architecture may look like."""
    return ending_of(name) in MODEL_ENDINGS or (space is None and FUNCTION_NAME.fullmatch(name) is not None)


def read_text(name: str, shape: Shape | None = None) -> str:
    """The text that a file holds, or of the network that a model or function describes.

    Raises:
        ValueError: it cannot be read, or is none.
    """
    path = Path(name)
    if FUNCTION_NAME.fullmatch(name):  # which has no ending
        return checked(graph_to_onnx_text(named_graph(name, shape, name)), name)
    if ending_of(path) in MODEL_ENDINGS:
        return model_to_onnx_text(path, shape)
    if not path.is_file():
        raise ValueError(f"{path}: expected a text file, got {instead_of_file(path)}.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: expected UTF-8 text, got {e.reason} at byte {e.start}.") from e
    text = text.removesuffix(f"\n{prelude()}")  # which `nasrlm convert --out` adds
    if ending_of(path) == ONNX_TEXT_ENDING:
        try:
            to_model(text)
        except OnnxTextError as e:
            raise ValueError(f"{path}: {e}") from e
    return text
