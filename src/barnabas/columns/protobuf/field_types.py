"""Protobuf's wire types, and the kinds of columns for its fields."""

from enum import IntEnum


class WireType(IntEnum):
    VARINT = 0
    FIXED64 = 1
    LEN = 2
    """Bytes after their length."""
    GROUP = 3
    GROUP_END = 4
    FIXED32 = 5


class ColumnKind(IntEnum):
    """The content of a column's buffers."""

    INT32 = 0
    """Or the bits of a float."""
    INT64 = 1
    """Or the bits of a double."""
    UINT32 = 2
    """In 64 bits: Spark has no unsigned numbers."""
    UINT64 = 3
    """As decimal(20, 0), for the same reason."""
    BOOL = 4
    TEXT = 5
    BYTES = 6
    ENUM = 7
    """As text: the name, or the number if it has no name."""
    TIMESTAMP = 8
    """Microseconds, of a google.protobuf.Timestamp."""
    MESSAGE = 9
