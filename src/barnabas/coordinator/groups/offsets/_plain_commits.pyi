from collections.abc import Container, Sequence

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import OffsetCommitRequestPartition

COMPILED: bool
ENTRY_BYTES: int

def pack(
    partitions: Sequence[OffsetCommitRequestPartition], existing: Container[int], timestamp: int
) -> tuple[list[ErrorCode], bytes] | None: ...
def encode(topics: list[tuple[bytes, bytes, bytes]], reserved: int) -> bytearray: ...
