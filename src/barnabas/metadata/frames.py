"""Encodes metadata records as the values of log records.

frame version  unsigned varint, always 1
record type    unsigned varint, the API key of the record
version        unsigned varint, of the record's schema
body           the record, encoded like any message of that version
"""

from collections.abc import Mapping
from functools import cache

from barnabas.metadata.features import MIN_METADATA_LEVEL
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages import metadata_records
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.schema import Message

_FRAME_VERSION = 1

# For each record type, (metadata level, record version) from which that version is written.
_VERSION_FROM: dict[type[Message], tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: ((MIN_METADATA_LEVEL, 1), (8, 2), (17, 3), (30, 4)),
    PartitionRecord: ((MIN_METADATA_LEVEL, 0), (17, 1), (23, 2)),
    PartitionChangeRecord: ((MIN_METADATA_LEVEL, 0), (17, 1), (23, 2)),
}


def encode_record(record: Message, version: int) -> bytes:
    """Returns a record encoded at a version, with its header."""
    return _header(type(record), version) + record.write(version)


def decode_record(frame: bytes | memoryview) -> Message:
    """Returns the record in a frame. Raises ProtocolViolation if its type is unknown."""
    return decode_record_and_version(frame)[0]


def decode_record_and_version(
    frame: bytes | memoryview, types: Mapping[int, type[Message]] | None = None
) -> tuple[Message, int]:
    """Returns the record in a frame, and the version that it is written in."""
    frame_version, position = _read_varint(frame, 0)
    if frame_version != _FRAME_VERSION:
        raise ProtocolViolation(f"metadata record frame version {frame_version} is unknown")
    key, position = _read_varint(frame, position)
    version, position = _read_varint(frame, position)
    record_type = (types or _record_types()).get(key)
    if record_type is None:
        raise ProtocolViolation(f"metadata record type {key} is unknown")
    record, _ = record_type.read(frame, version, position)
    return record, version


def record_version(record: Message, metadata_level: int) -> int:
    """Returns the version in which a cluster at `metadata_level` writes a record."""
    if isinstance(record, BrokerRegistrationChangeRecord):
        return _registration_change_version(record)
    steps = _VERSION_FROM.get(type(record))
    if steps is None:
        return 0
    return max(version for level, version in steps if metadata_level >= level)


def _registration_change_version(record: BrokerRegistrationChangeRecord) -> int:
    """Returns the oldest version that has the fields in use, so that older nodes can read it."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    return 1 if record.in_controlled_shutdown else 0


@cache
def _header(record_type: type[Message], version: int) -> bytes:
    header = bytearray()
    for number in (_FRAME_VERSION, record_type.API_KEY, version):
        _write_varint(header, number)
    return bytes(header)


@cache
def _record_types() -> dict[int, type[Message]]:
    return {
        declared.API_KEY: declared
        for declared in vars(metadata_records).values()
        if isinstance(declared, type)
        and issubclass(declared, Message)
        and declared.__name__.endswith("Record")
    }


def _write_varint(buffer: bytearray, number: int) -> None:
    while number > 0x7F:
        buffer.append(number & 0x7F | 0x80)
        number >>= 7
    buffer.append(number)


def _read_varint(frame: bytes | memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while shift < 35:
        if position >= len(frame):
            raise ProtocolViolation("metadata record frame ends inside its header")
        byte = frame[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    raise ProtocolViolation("metadata record frame has an overlong varint")
