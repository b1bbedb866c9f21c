"""How values are written in Protobuf's wire format, and how they are kept in columns."""

from enum import IntEnum


class Wire(IntEnum):
    VARINT = 0
    FIXED64 = 1
    SPAN = 2
    """Bytes after their number."""
    GROUP = 3
    GROUP_END = 4
    FIXED32 = 5


class Kind(IntEnum):
    """What a column's buffers hold."""

    INT32 = 0
    """Or a float: its bits."""
    INT64 = 1
    """Or a double: its bits."""
    UINT32 = 2
    """In 64 bits: Spark has no unsigned numbers."""
    UINT64 = 3
    """As decimal(20, 0), for the same reason."""
    BOOL = 4
    TEXT = 5
    BYTES = 6
    ENUM = 7
    """As text: the name, or the number where it has none."""
    TIMESTAMP = 8
    """Microseconds, of a google.protobuf.Timestamp."""
    MESSAGE = 9
