"""The records of offsets are byte for byte those that are declared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coordinator.groups.offsets.record import (
    OFFSET_RECORDS,
    CommittedOffset,
    LegacyOffsetKey,
    OffsetKey,
)
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes, encode
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages import group_records as wire
from barnabas.wire.uuid import ZERO

TYPES = RecordTypes(OFFSET_RECORDS)

int32s, int64s = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
keys = st.builds(OffsetKey, st.text(max_size=50), st.text(max_size=50), int32s)
values = st.builds(
    CommittedOffset,
    int64s,
    int32s,
    st.just("") | st.text(max_size=200),
    int64s,
    st.just(-1),
    st.just(ZERO) | st.binary(min_size=16, max_size=16),
)


def declared(value: CommittedOffset) -> wire.OffsetCommitValue:
    return wire.OffsetCommitValue(**value._asdict())


@given(keys, values)
def test_offset_records_are_written_as_declared_and_read_back(
    key: OffsetKey, value: CommittedOffset
) -> None:
    record = encode(CoordinatorRecord(key, value, 4), 0)
    declared_key = wire.OffsetCommitKey(**key._asdict())
    assert record.key == b"\0\1" + declared_key.write(0)
    assert record.value == b"\0\4" + declared(value).write(4)
    assert TYPES.decode(record.key, record.value) == (key, value, 4)
    assert TYPES.decode(record.key, None) == (key, None, 0)


@given(keys, values, st.integers(0, 3), int64s)
def test_older_versions_are_read_as_declared(
    key: OffsetKey, value: CommittedOffset, version: int, expiry: int
) -> None:
    record = encode(CoordinatorRecord(key, value._replace(expire_timestamp=expiry), version), 0)
    assert TYPES.decode(record.key or b"", record.value) == (
        key,
        CommittedOffset(
            value.offset,
            value.leader_epoch if version == 3 else -1,
            value.metadata,
            value.commit_timestamp,
            expiry if version == 1 else -1,
            ZERO,
        ),
        version,
    )


def test_the_oldest_kind_of_record_is_read() -> None:
    key = wire.LegacyOffsetCommitKey(group="g", topic="t", partition=3)
    value = wire.LegacyOffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
    decoded = TYPES.decode(b"\0\0" + key.write(0), b"\0\0" + value.write(0))
    assert decoded is not None
    assert type(decoded.key) is LegacyOffsetKey
    assert decoded[:2] == (("g", "t", 3), (7, -1, "m", 9, -1, ZERO))


def test_bytes_as_kafka_4_3_1_wrote_them() -> None:
    key = bytes.fromhex("0001000267390002743100000000")
    value = bytes.fromhex(
        "0004000000000000000500000003056d657461000001a1e25d878c01"
        "00100c5fa199747f42b69cc99fa3996a4640"
    )
    decoded = TYPES.decode(key, value)
    assert decoded is not None
    assert decoded.key == ("g9", "t1", 0)
    assert decoded.value[:3] == (5, 3, "meta")
    assert decoded.value.topic_id.hex() == "0c5fa199747f42b69cc99fa3996a4640"
    assert encode(decoded, 0)[2:4] == (key, value)


def test_a_version_that_is_not_known_is_not_read() -> None:
    key = b"\0\1" + OffsetKey("g", "t", 0).write(0)
    with pytest.raises(ProtocolViolation, match="has no version 5"):
        TYPES.decode(key, b"\0\5whatever")
    assert TYPES.decode(b"\0\2" + key[2:], b"\0\4") is None


@pytest.mark.parametrize(
    "key", [b"", b"\0", b"\0\1g", b"\0\1g\0\2t", b"\0\1\xff\0\1t", b"\x7f\xff"]
)
def test_an_invalid_offset_key_is_a_protocol_violation(key: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        TYPES.decode(b"\0\1" + key + b"\0\0\0\1", None)
