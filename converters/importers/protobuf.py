"""Reads protocol buffer messages without their schema."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

GROUP = 3  # deprecated wire type
AS_FLOATS = {1: ("<Q", "<d"), 5: ("<I", "<f")}  # fixed wire types: format of the library's integer, and as a float


def read_fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Yield number and value of every field in the order written: varints unsigned, fixed fields as floats.

    Raises:
        ValueError: the message is truncated or contains a group.
    """
    try:
        fields = UnknownFieldSet(Empty.FromString(message))
    except DecodeError as e:
        raise ValueError(f"{len(message)} bytes that are not a complete message") from e
    for field in fields:
        if field.wire_type == GROUP:
            raise ValueError(f"a group as field {field.field_number}")
        value = field.data
        if formats := AS_FLOATS.get(field.wire_type):
            (value,) = struct.unpack(formats[1], struct.pack(formats[0], value))
        yield field.field_number, value
