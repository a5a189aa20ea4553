"""Reads pickles as data: only containers, strings, numbers and arrays of numbers; anything else is refused, never run.

A pickle is a program that may call any function by name. This unpickler admits only the few harmless names in
``ADMITTED``. Weights of networks, which benchmark files may contain besides the results, are dropped unread.

Source:
    Python documentation, pickle, "Restricting Globals"; for .pth the two layouts of torch.save,
    pytorch/pytorch, torch/serialization.py.
"""

from __future__ import annotations

import bz2
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from contextlib import suppress
from os import SEEK_END
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from converters.importers.reading import BenchmarkFileError, reading

TORCH_MAGIC = 0x1950A86A20F9469CFC6C  # first value in the older layout of torch.save
NUMBER_KINDS = "biuf"
PUT = ("BINPUT", "LONG_BINPUT", "PUT")  # opcodes that keep a value at a numbered place


def read_pickle(path: Path) -> Any:
    """Return the values of a pickle, which is compressed if its name ends in .pbz2.

    Raises:
        BenchmarkFileError: the file is truncated, no pickle, or has anything else than containers and numbers.
    """
    with reading(path, "a pickle"), bz2.open(path) if path.suffix == ".pbz2" else path.open("rb") as stream:
        if path.suffix != ".pbz2":  # bz2 has a checksum
            _check_places(stream)
        return _load(stream, path)


def _check_places(stream: IO[bytes]) -> None:
    """Refuse a place for a value that is larger than the file: the unpickler takes memory for all places up to it."""
    places = 0
    with suppress(Exception):  # other damage, which the unpickler reports
        for opcode, place, _ in pickletools.genops(stream):
            if opcode.name in PUT:
                places = max(places, place or 0)
    size = stream.seek(0, SEEK_END)
    stream.seek(0)
    if places > size:
        raise pickle.UnpicklingError(f"place {places:,} for a value in {size:,} bytes")


def read_torch(path: Path) -> Any:
    """Return the values in a file of torch.save, in either of its layouts, with None in place of tensors.

    Raises:
        BenchmarkFileError: as ``read_pickle``.
    """
    with reading(path, "a file of torch.save"):
        return _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)


def _read_zip(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
        if len(names) != 1:
            raise BenchmarkFileError(
                f"{path}: expected one data.pkl inside, got {len(names)}. Was it written by torch.save?"
            )
        with archive.open(names[0]) as stream:
            return _load(stream, path)


def _read_legacy(path: Path) -> Any:
    with path.open("rb") as stream:
        if _load(stream, path) != TORCH_MAGIC:
            raise BenchmarkFileError(f"{path}: expected a file written by torch.save, got a pickle of something else.")
        _load(stream, path)  # version of the layout
        _load(stream, path)  # byte order and sizes of the machine that wrote it
        return _load(stream, path)


def _load(stream: IO[bytes], path: Path) -> Any:
    try:
        return PlainUnpickler(stream).load()
    except ForbiddenNameError as e:
        raise BenchmarkFileError(
            f"{path}: expected a pickle of containers and numbers, got one that needs {e}. Such a file can run code: "
            "nothing of it was run. Get it from the benchmark's own page."
        ) from e


class ForbiddenNameError(pickle.UnpicklingError):
    """A pickle uses a name that is not admitted; the message is that name."""


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that admits only the names in ``ADMITTED`` and replaces tensors by None."""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) in ADMITTED:
            return ADMITTED[module_name, global_name]
        if module_name == "torch._utils" and global_name.startswith("_rebuild_"):
            return _drop
        if module_name in ("torch", "torch.storage") and global_name.endswith("Storage"):
            return None  # only used as an argument of _drop
        raise ForbiddenNameError(f"{module_name}.{global_name}")

    def persistent_load(self, pid: Any, /) -> Any:
        """Return None for the storage of a tensor, which lies outside the pickle and is not read."""
        return None


def _drop(*_: Any) -> None:
    """Stand in for a function that would make a tensor; returns None."""


def _dtype(spec: str, *_: Any) -> np.dtype[Any]:
    found = np.dtype(spec, copy=True)
    if found.kind not in NUMBER_KINDS:
        raise ValueError(f"an array of {found}, which are not numbers")
    return found


def _scalar(dtype: np.dtype[Any], raw: bytes) -> float | int | bool:
    (value,) = np.frombuffer(raw, dtype).tolist()
    return value  # type: ignore[no-any-return]


def _empty_array(*_: Any) -> NDArray[np.uint8]:
    """Return an array that the pickle then fills; the sizes given in the file are not used."""
    return np.empty(0, np.uint8)


def _from_buffer(raw: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], order: Literal["C", "F"]) -> NDArray[Any]:
    return np.frombuffer(raw, dtype).reshape(shape, order=order)


def _encode(text: str, encoding: str) -> bytes:
    """Return bytes that a pickle of the protocols before Python 3 stores as a string."""
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray")
ADMITTED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _dtype,
    ("numpy", "ndarray"): None,  # only used as an argument of _empty_array
    **{(module, "scalar"): _scalar for module in _NUMPY},
    **{(module, "_reconstruct"): _empty_array for module in _NUMPY},
    **{(module, "_frombuffer"): _from_buffer for module in ("numpy.core.numeric", "numpy._core.numeric")},
    **{(module, kind.__name__): kind for module in ("builtins", "__builtin__") for kind in (set, frozenset)},
}
