"""Reads and verifies TFRecord files without TensorFlow.

A record consists of its length (8 bytes), the masked CRC-32C of the length, the data, and the masked CRC-32C of the
data, all little-endian.

Source:
    TensorFlow guide, "TFRecord and tf.train.Example", section on the format; RFC 3720, appendix B.4 for CRC-32C.

Shapes: N records, L bytes in the longest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from converters.importers.reading import BenchmarkFileError

POLYNOMIAL = 0x82F63B78  # of Castagnoli, bits reversed
MASK = 0xA282EAD8
BATCH = 4096  # records checked at once: 128 MB/s on one core
LONGEST = 1 << 16  # bytes of a record: NAS-Bench-101's have 1,000, and those of a batch are padded to the longest
HEADER, FOOTER = struct.Struct("<QI"), struct.Struct("<I")


def read_records(path: Path, *, progress: bool = False) -> Iterator[bytes]:
    """Yield the data of every record, with both checksums verified.

    Raises:
        BenchmarkFileError: the file is truncated, a checksum does not match, or a record has more than LONGEST bytes;
            the message has the record, counted from 0.
    """
    with (
        path.open("rb") as stream,
        tqdm(total=path.stat().st_size, desc=path.name, unit="B", unit_scale=True, disable=not progress) as bar,
    ):
        first = 0
        everything = _read_all(stream, path)
        while batch := list(islice(everything, BATCH)):
            records = [data for data, _ in batch]
            _check(records, [checksum for _, checksum in batch], first, path)
            yield from records
            first += len(records)
            bar.update(stream.tell() - bar.n)


def crc32c(records: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return (N,) the CRC-32C of N byte strings, computed together.

    Example:
        >>> hex(crc32c([b"123456789"])[0])
        '0xe3069283'
    """
    lengths = np.array([len(record) for record in records])
    order = np.argsort(-lengths, kind="stable")
    longest = int(lengths.max(initial=0))
    padded = b"".join(records[row].ljust(longest, b"\0") for row in order)
    columns = np.frombuffer(padded, np.uint8).reshape(len(records), longest).T.copy()  # (L, N)
    rows_left = np.searchsorted(-lengths[order], -np.arange(longest), side="left")  # records longer than this column
    state, table = np.full(len(records), 0xFFFFFFFF, np.uint32), _table()
    for column, rows in zip(columns, rows_left, strict=True):
        live = state[:rows]
        state[:rows] = table[(live ^ column[:rows]) & 0xFF] ^ (live >> 8)
    found = np.empty_like(state)
    found[order] = state ^ np.uint32(0xFFFFFFFF)
    return found


def mask(checksums: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return (N,) masked checksums (rotated, plus a constant), as stored in the files."""
    return (((checksums >> 15) | (checksums << 17)) + np.uint32(MASK)).astype(np.uint32)


def _read_all(stream: IO[bytes], path: Path) -> Iterator[tuple[bytes, int]]:
    index = 0
    while header := stream.read(HEADER.size):
        place = f"{path}, record {index}"
        if len(header) < HEADER.size:
            raise _truncated(place, HEADER.size, len(header))
        length, checksum = HEADER.unpack(header)
        if _length_checksum(header[:8]) != checksum:
            raise BenchmarkFileError(
                f"{place}: expected a length with its checksum, got bytes that do not match. Is it a TFRecord file, "
                "and was it downloaded completely?"
            )
        if length > LONGEST:
            raise BenchmarkFileError(
                f"{place}: expected at most {LONGEST:,} bytes, got {length:,}. Is it the right file?"
            )
        data, footer = stream.read(length), stream.read(FOOTER.size)
        if len(data) + len(footer) < length + FOOTER.size:
            raise _truncated(place, length + FOOTER.size, len(data) + len(footer))
        yield data, FOOTER.unpack(footer)[0]
        index += 1


def _truncated(place: str, expected: int, got: int) -> BenchmarkFileError:
    return BenchmarkFileError(
        f"{place}: expected {expected} more bytes, got {got}. The file is truncated: download it again."
    )


def _check(records: Sequence[bytes], expected: Sequence[int], first: int, path: Path) -> None:
    wrong = np.flatnonzero(mask(crc32c(records)) != np.array(expected, np.uint32))
    if wrong.size:
        raise BenchmarkFileError(
            f"{path}, record {first + int(wrong[0])}: expected data with its checksum, got bytes that do not match. "
            "The file is damaged: download it again."
        )


@cache
def _length_checksum(length: bytes) -> int:
    return int(mask(crc32c([length]))[0])


@cache
def _table() -> NDArray[np.uint32]:
    """Return (256,) the CRC remainder of each byte."""
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = np.where(state & 1, (state >> 1) ^ np.uint32(POLYNOMIAL), state >> 1)
    return state
