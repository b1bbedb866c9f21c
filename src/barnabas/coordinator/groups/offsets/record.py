"""The records of committed offsets, in the log and in the state.

They are the bulk of `__consumer_offsets`, so they have a codec of their own: for keys, and for
values without metadata in the version that Kafka 4.3 writes. Other values use the declared
message.

A key, after its type:

    group           string   int16 length, UTF-8
    topic           string
    partition       int32

A value of version 4, after its version:

    offset          int64
    leader epoch    int32    -1 if the client did not send it
    metadata        string   varint length + 1, UTF-8
    timestamp       int64    when it was committed
    tags            varint   how many; tag 0 is the topic's id: varint 0, varint 16, 16 bytes
"""

import struct
from collections.abc import Callable
from functools import cache, lru_cache
from struct import Struct
from typing import Any, ClassVar, NamedTuple, Self

from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.group_records import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from barnabas.wire.schema import VersionRange
from barnabas.wire.uuid import ZERO

NO_LEADER_EPOCH = -1
NO_EXPIRY = -1
VERSION = 4
VERSION_WITH_EXPIRY = 1
"""The only version that has an expiry. It has no epoch and no topic id."""

_SIZE = Struct(">h")
_PARTITION = Struct(">i")
_PLAIN = Struct(">qicq3s16s")
_PLAIN_WITHOUT_ID = Struct(">qicqc")
_NO_METADATA = b"\x01"
_TOPIC_ID_TAG = b"\x01\x00\x10"
_NO_TAGS = b"\x00"
_CACHED_NAMES = 1024

_new: Any = tuple.__new__  # takes half the time of a named tuple's own constructor


class _Key(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetKey(_Key):
    """The group, topic and partition that an offset is committed for."""

    __slots__ = ()

    API_KEY: ClassVar[int] = OffsetCommitKey.API_KEY

    def write(self, version: int) -> bytes:
        group, topic, partition = self
        return write_names(group, topic) + _PARTITION.pack(partition)

    @classmethod
    def reader(cls, version: int) -> Callable[[bytes, int], tuple[Self, int]]:
        def read(key: bytes, position: int) -> tuple[Self, int]:
            end = len(key)
            if end < position + 4:
                raise ProtocolViolation(f"{key!r} is too short for a key of an offset")
            (partition,) = _PARTITION.unpack_from(key, end - 4)
            return _new(cls, (*read_names(key[position : end - 4]), partition)), end

        return read


class LegacyOffsetKey(OffsetKey):
    """The key that Kafka wrote before 0.9."""

    __slots__ = ()

    API_KEY: ClassVar[int] = LegacyOffsetCommitKey.API_KEY


class _Value(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes


class CommittedOffset(_Value):
    """A committed offset with its metadata.

    `expire_timestamp` is set by clients before 2.1; -1 means the broker's retention. `topic_id` is
    zero where a record of an older version does not have it.
    """

    __slots__ = ()

    API_KEY: ClassVar[int] = OffsetCommitValue.API_KEY
    VERSIONS: ClassVar[VersionRange] = OffsetCommitValue.VERSIONS

    def write(self, version: int) -> bytes:
        offset, epoch, metadata, timestamp, _, topic_id = self
        if metadata or version != VERSION:
            return OffsetCommitValue(**self._asdict()).write(version)
        if topic_id == ZERO:
            return _PLAIN_WITHOUT_ID.pack(offset, epoch, _NO_METADATA, timestamp, _NO_TAGS)
        return _PLAIN.pack(offset, epoch, _NO_METADATA, timestamp, _TOPIC_ID_TAG, topic_id)

    @classmethod
    def reader(cls, version: int) -> Callable[[bytes, int], tuple["CommittedOffset", int]]:
        return _read_value if version == VERSION else _reader_of_declared(version)


class LegacyCommittedOffset(CommittedOffset):
    """The value that Kafka wrote before 0.9, which equals version 0."""

    __slots__ = ()

    API_KEY: ClassVar[int] = LegacyOffsetCommitValue.API_KEY
    VERSIONS: ClassVar[VersionRange] = LegacyOffsetCommitValue.VERSIONS


OFFSET_RECORDS = ((LegacyOffsetKey, LegacyCommittedOffset), (OffsetKey, CommittedOffset))


def _read_value(value: bytes, position: int) -> tuple[CommittedOffset, int]:
    end = len(value)
    if end - position == _PLAIN.size:
        offset, epoch, metadata, timestamp, tag, topic_id = _PLAIN.unpack_from(value, position)
        if metadata == _NO_METADATA and tag == _TOPIC_ID_TAG:
            return _new(CommittedOffset, (offset, epoch, "", timestamp, NO_EXPIRY, topic_id)), end
    elif end - position == _PLAIN_WITHOUT_ID.size:
        offset, epoch, metadata, timestamp, tag = _PLAIN_WITHOUT_ID.unpack_from(value, position)
        if metadata == _NO_METADATA and tag == _NO_TAGS:
            return _new(CommittedOffset, (offset, epoch, "", timestamp, NO_EXPIRY, ZERO)), end
    return _reader_of_declared(VERSION)(value, position)


@cache
def _reader_of_declared(version: int) -> Callable[[bytes, int], tuple[CommittedOffset, int]]:
    read_message = OffsetCommitValue.reader(version)

    def read(value: bytes, position: int) -> tuple[CommittedOffset, int]:
        message, end = read_message(value, position)
        committed = CommittedOffset(
            message.offset,
            message.leader_epoch,
            message.metadata,
            message.commit_timestamp,
            message.expire_timestamp,
            bytes(message.topic_id),
        )
        return committed, end

    return read


# Consecutive records are often of one topic: their keys are equal up to the partition.
@lru_cache(maxsize=_CACHED_NAMES)
def read_names(names: bytes) -> tuple[str, str]:
    """Returns the group and the topic in a key, without its type and its partition.

    Raises ProtocolViolation if they are not two whole strings.
    """
    try:
        topic_at = 2 + _SIZE.unpack_from(names)[0]
        group, topic = names[2:topic_at].decode(), names[topic_at + 2 :].decode()
        is_whole = _SIZE.unpack_from(names, topic_at)[0] == len(names) - topic_at - 2
    except (struct.error, UnicodeDecodeError):
        is_whole = False
    if not is_whole:
        raise ProtocolViolation(f"{names!r} are not the names of a group and a topic")
    return group, topic


@lru_cache(maxsize=_CACHED_NAMES)
def write_names(group: str, topic: str) -> bytes:
    """Returns the part of a key that has the group and the topic."""
    encoded = group.encode(), topic.encode()
    return b"".join(_SIZE.pack(len(name)) + name for name in encoded)
