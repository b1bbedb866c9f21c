"""The internal topics and their records: a typed key, with a versioned value or a tombstone.

A key begins with the int16 of its type, a value with the int16 of its version.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.records.build import Record
from barnabas.wire.schema import VersionRange

_INT16 = Struct(">h")
_KEY_VERSION = 0

_new: Any = tuple.__new__  # takes half the time of a named tuple's own constructor

Reader = Callable[[bytes, int], tuple[Any, int]]

EncodedRecord = tuple[bytes | None, bytes | None]
"""The key and the value of a record in the log."""


GROUPS_TOPIC: Final = "__consumer_offsets"


TRANSACTIONS_TOPIC: Final = "__transaction_state"


SHARE_GROUPS_TOPIC: Final = "__share_group_state"


INTERNAL_TOPICS: Final = frozenset({GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARE_GROUPS_TOPIC})


class RecordKey(Protocol):
    """A type of key: a declared message, or a class that does the same faster."""

    API_KEY: ClassVar[int]

    def write(self, version: int) -> bytes: ...

    @classmethod
    def reader(cls, version: int) -> Reader: ...


class RecordValue(RecordKey, Protocol):
    """A type of value."""

    VERSIONS: ClassVar[VersionRange]


class CoordinatorRecord(NamedTuple):
    """One change of the state. A value of None is a tombstone: it deletes what the key names."""

    key: Any
    value: Any
    version: int = 0
    """The version in which the value is written."""


class PackedRecords(Sequence[CoordinatorRecord]):
    """Many records of one kind, which are encoded and replayed without an object for each.

    As a sequence they are the records that they stand for.
    """

    __slots__ = ()

    @abstractmethod
    def encode(self, reserved_bytes: int) -> bytearray:
        """Returns the encoded records, all of one timestamp, after the reserved bytes."""

    @abstractmethod
    def replay(self, state: Any) -> None:
        """Replays the records into the state."""


class ReplayedState(Protocol):
    """A state that the records of a log build up."""

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        """Applies a record. With a producer id it is pending until that producer's transaction
        ends; -1 means none."""

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """Applies a transaction marker: the producer's pending records take effect, or never do."""


class RecordTypes:
    """The types of records in a topic, by the number that begins their keys."""

    __slots__ = ("_by_number",)

    def __init__(self, pairs: Iterable[tuple[type[RecordKey], type[RecordValue]]]) -> None:
        self._by_number = {
            _INT16.pack(key.API_KEY): (key.reader(_KEY_VERSION), _ValueReaders(value))
            for key, value in pairs
        }

    def replay(self, records: list[EncodedRecord], producer_id: int, state: Any) -> None:
        """Decodes the records and replays them into a state. Skips those of unknown types."""
        decode, replay = self.decode, state.replay
        for key, value in records:
            decoded = decode(key, value) if key is not None else None
            if decoded is not None:
                replay(decoded, producer_id)

    def decode(self, key: bytes, value: bytes | None) -> CoordinatorRecord | None:
        """Returns the record, or None if this broker does not know its type.

        Raises ProtocolViolation if this broker does not know the version of its value: to skip
        the record would lose a part of the state.
        """
        readers = self._by_number.get(key[:2])
        if readers is None:
            return None
        read_key, value_readers = readers
        if value is None:
            return CoordinatorRecord(read_key(key, 2)[0], None)
        read_value, version = value_readers[value[:2]]
        record: CoordinatorRecord = _new(
            CoordinatorRecord, (read_key(key, 2)[0], read_value(value, 2)[0], version)
        )
        return record


class _ValueReaders(dict[bytes, tuple[Reader, int]]):
    """The readers of a value by the int16 of the version, made on first use."""

    def __init__(self, value: type[RecordValue]) -> None:
        self._value = value

    def __missing__(self, prefix: bytes) -> tuple[Reader, int]:
        version = int.from_bytes(prefix, signed=True)
        if len(prefix) < _INT16.size or version not in self._value.VERSIONS:
            raise ProtocolViolation(f"{self._value.__name__} has no version {version} here.")
        reader = self[prefix] = self._value.reader(version), version
        return reader


def encode(record: CoordinatorRecord, timestamp: int) -> Record:
    key, value, version = record
    return Record(
        0,
        timestamp,
        _INT16.pack(key.API_KEY) + key.write(_KEY_VERSION),
        None if value is None else _INT16.pack(version) + value.write(version),
        [],
    )
