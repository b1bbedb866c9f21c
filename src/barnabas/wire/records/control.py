"""Control records: transaction markers and the quorum's own records.

The key has the type: int16 version, int16 type. The value of a transaction marker is below; the
values of the others are messages of `wire.messages.raft_records`.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from barnabas.wire.records.batch import CorruptBatch
from barnabas.wire.records.build import Record, build_batch

_KEY = struct.Struct(">hh")  # version, type
_MARKER = struct.Struct(">hi")  # version, epoch of the coordinator that wrote it
_VERSION = 0


class ControlType(IntEnum):
    """The type of a control record."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    committed: bool
    coordinator_epoch: int


def control_key(control_type: ControlType) -> bytes:
    return _KEY.pack(_VERSION, control_type)


def read_control_type(key: bytes | None) -> ControlType:
    """Returns the type of a control record; a type this version does not know is UNKNOWN."""
    if key is None or len(key) < _KEY.size:
        raise CorruptBatch(f"A control record's key takes {_KEY.size} bytes; it is {key!r}.")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"A control record has the key version {version}.")
    if control_type in ControlType._value2member_map_:
        return ControlType(control_type)
    return ControlType.UNKNOWN


def read_marker(record: Record) -> EndTransactionMarker | None:
    """Returns the transaction marker in a control record, or None for other types."""
    control_type = read_control_type(record.key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _MARKER.size:
        raise CorruptBatch(f"The transaction marker at offset {record.offset} is truncated.")
    version, coordinator_epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptBatch(f"The marker at offset {record.offset} has version {version}.")
    return EndTransactionMarker(control_type is ControlType.COMMIT, coordinator_epoch)


def build_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Returns the batch that ends a transaction: one control record without sequence number."""
    return build_control_batch(
        ControlType.COMMIT if committed else ControlType.ABORT,
        _MARKER.pack(_VERSION, coordinator_epoch),
        timestamp=timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


def build_control_batch(
    control_type: ControlType,
    value: bytes,
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    transactional: bool = False,
) -> bytearray:
    """Returns a batch of one control record."""
    return build_batch(
        [Record(base_offset, timestamp, control_key(control_type), value, [])],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
    )
