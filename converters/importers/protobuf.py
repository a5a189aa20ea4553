"""Just enough of the protocol buffer wire format to read one small message.

Source:
    protobuf.dev, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def read_fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of every field, in the order written: varints unsigned, fixed fields as floats.

    Raises:
        ValueError: the message ends within a field, or has a wire type of another age.
    """
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire_type == BYTES:
            size, position = _varint(message, position)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire_type} of field {number}")
        raw = message[position : position + size]
        if len(raw) < size:
            raise ValueError(f"a message that ends within field {number}")
        yield number, raw if wire_type == BYTES else struct.unpack("<d" if size == 8 else "<f", raw)[0]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 64:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("a message that ends within a number")
