"""Records of the internal topics: a typed key, and a value of some version or a tombstone.

A key begins with the int16 of its type, a value with the int16 of its version.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Any, NamedTuple

from barnabas.wire.records.build import Record
from barnabas.wire.schema import Message

_INT16 = Struct(">h")
_KEY_VERSION = 0


class CoordinatorRecord(NamedTuple):
    """One change. A value of None takes back what the key stands for."""

    key: Any
    value: Any
    version: int = 0
    """The version the value is written in."""


class RecordTypes:
    """The kinds of records a topic holds, by the number before their keys."""

    __slots__ = ("_by_number",)

    def __init__(self, pairs: Iterable[tuple[type[Message], type[Message]]]) -> None:
        self._by_number = {
            _INT16.pack(key.API_KEY): (key.reader(_KEY_VERSION), value) for key, value in pairs
        }

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        """None if the record is of a kind, or its value of a version, that is not known here."""
        known = self._by_number.get(bytes(key[:2]))
        if known is None:
            return None
        read_key, value_type = known
        decoded_key, _ = read_key(key, 2)
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        (version,) = _INT16.unpack_from(value)
        if version not in value_type.VERSIONS:
            return None
        decoded_value, _ = value_type.reader(version)(value, 2)
        return CoordinatorRecord(decoded_key, decoded_value, version)


def encode(record: CoordinatorRecord, timestamp: int) -> Record:
    key, value, version = record
    return Record(
        0,
        timestamp,
        _INT16.pack(key.API_KEY) + key.write(_KEY_VERSION),
        None if value is None else _INT16.pack(version) + value.write(version),
        [],
    )
