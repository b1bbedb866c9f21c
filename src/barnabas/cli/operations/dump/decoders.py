"""Decoders of the keys and values of records, by topic."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from struct import Struct
from types import ModuleType
from typing import Any, Protocol

from barnabas.metadata.frames import decode_record_and_version
from barnabas.wire.as_json import as_json
from barnabas.wire.errors import KafkaError, ProtocolViolation
from barnabas.wire.records.record import Record
from barnabas.wire.schema import Message

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_FLOAT64 = Struct(">d")


class Decoder(Protocol):
    """Returns the text of a record's key and value; None where there is nothing to print."""

    def __call__(self, record: Record) -> tuple[str | None, str | None]: ...


def key_value_decoder(key: Callable[[bytes], str], value: Callable[[bytes], str]) -> Decoder:
    """Returns a decoder of keys and values independent of each other."""

    def decode(record: Record) -> tuple[str | None, str | None]:
        return (
            None if record.key is None else key(record.key),
            None if record.value is None else value(record.value),
        )

    return decode


def decode_text(content: bytes) -> str:
    return content.decode(errors="replace")


def decode_int(content: bytes) -> str:
    return str(_INT32.unpack(content)[0])


def decode_long(content: bytes) -> str:
    return str(_INT64.unpack(content)[0])


def decode_double(content: bytes) -> str:
    return repr(_FLOAT64.unpack(content)[0])


DECODER_CLASSES: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": decode_text,
    "DefaultDecoder": repr,
    "IntegerDecoder": decode_int,
    "LongDecoder": decode_long,
    "DoubleDecoder": decode_double,
}
"""Kafka's decoder classes, by the last part of their names."""


def decode_cluster_metadata(record: Record) -> tuple[str | None, str | None]:
    """`__cluster_metadata`."""
    if record.value is None:
        return None, None
    try:
        message, version = decode_record_and_version(record.value)
    except (KafkaError, ProtocolViolation) as unknown:
        return None, f"Error at {record.offset}, skipping. {unknown}"
    fields = {"type": _record_name(message), "version": version, "data": as_json(message, version)}
    return None, _to_json(fields)


def decode_consumer_offsets(record: Record) -> tuple[str | None, str | None]:
    """`__consumer_offsets`, including the subscriptions and assignments of members."""
    return _decode_coordinator_record(record, "__consumer_offsets")


def decode_transaction_state(record: Record) -> tuple[str | None, str | None]:
    """`__transaction_state`."""
    return _decode_coordinator_record(record, "__transaction_state")


def decode_share_group_state(record: Record) -> tuple[str | None, str | None]:
    """`__share_group_state`."""
    return _decode_coordinator_record(record, "__share_group_state")


def decode_remote_log_metadata(record: Record) -> tuple[str | None, str | None]:
    """`__remote_log_metadata`: framed like cluster metadata, with its own record types."""
    from barnabas.wire.messages import storage_records

    if record.value is None:
        return None, None
    try:
        message, version = decode_record_and_version(record.value, _records_of(storage_records))
    except (KafkaError, ProtocolViolation) as unknown:
        return None, f"Could not deserialize metadata record due to: {unknown}"
    return None, _to_json(as_json(message, version))


TOPIC_DECODERS: dict[str, Decoder] = {
    "__cluster_metadata": decode_cluster_metadata,
    "__consumer_offsets": decode_consumer_offsets,
    "__transaction_state": decode_transaction_state,
    "__share_group_state": decode_share_group_state,
    "__remote_log_metadata": decode_remote_log_metadata,
}
"""The decoders of internal topics."""


RecordTypes = dict[int, tuple[type[Message], type[Message]]]


def _decode_coordinator_record(record: Record, topic: str) -> tuple[str | None, str | None]:
    """Decodes a key with a type, and a value with a version or a tombstone."""
    if record.key is None or len(record.key) < _INT16.size:
        return None, None
    types = record_types(topic)
    (number,) = _INT16.unpack_from(record.key)
    if number not in types:
        return f"Unknown record type {number} at offset {record.offset}, skipping.", None
    key_type, value_type = types[number]
    try:
        key = key_type.read_exactly(record.key, 0, _INT16.size)
        key_fields = {"type": str(number), "data": as_json(key, 0)}
        if record.value is None:
            return _to_json(key_fields), "<DELETE>"
        (version,) = _INT16.unpack_from(record.value)
        value, _ = value_type.read(record.value, version, _INT16.size)
        value_fields = {
            "version": str(version),
            "data": _with_member_protocol(as_json(value, version), value),
        }
    except (KafkaError, ProtocolViolation) as malformed:
        return f"Error at offset {record.offset}, skipping. {malformed}", None
    return _to_json(key_fields), _to_json(value_fields)


def _with_member_protocol(fields: dict[str, Any], value: Message) -> dict[str, Any]:
    """Adds the decoded subscription and assignment of each member of a classic group."""
    from barnabas.wire.messages.consumer_protocol import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )
    from barnabas.wire.messages.group_records import GroupMetadataValue

    if not isinstance(value, GroupMetadataValue) or value.protocol_type != "consumer":
        return fields
    for member_fields, member in zip(fields["members"], value.members, strict=True):
        member_fields["subscription"] = _decode_embedded(
            ConsumerProtocolSubscription, member.subscription
        )
        member_fields["assignment"] = _decode_embedded(
            ConsumerProtocolAssignment, member.assignment
        )
    return fields


def _decode_embedded(kind: type[Message], content: bytes) -> Any:
    if len(content) < _INT16.size:
        return {}
    version = min(_INT16.unpack_from(content)[0], kind.VERSIONS.max)
    message, _ = kind.read(content, version, _INT16.size)
    return as_json(message, version)


@cache
def record_types(topic: str) -> RecordTypes:
    """Returns the key and value types of an internal topic, by the number at the start of a key."""
    from barnabas.wire.messages import (
        group_records,
        share_group_records,
        share_records,
        streams_group_records,
        transaction_records,
    )

    return _pair_types(
        {
            "__consumer_offsets": (group_records, share_group_records, streams_group_records),
            "__transaction_state": (transaction_records,),
            "__share_group_state": (share_records,),
        }[topic]
    )


def _pair_types(modules: Iterable[ModuleType]) -> RecordTypes:
    """Returns pairs of key and value types by the type number of the key."""
    pairs: RecordTypes = {}
    for module in modules:
        declared = vars(module)
        for name, key in declared.items():
            value = declared.get(name.removesuffix("Key") + "Value")
            if name.endswith("Key") and value is not None:
                pairs[key.API_KEY] = (key, value)
    return pairs


@cache
def _records_of(module: ModuleType) -> dict[int, type[Message]]:
    return {
        declared.API_KEY: declared
        for name, declared in vars(module).items()
        if name.endswith("Record") and issubclass(declared, Message)
    }


def _record_name(message: Message) -> str:
    """Returns REGISTER_BROKER_RECORD for RegisterBrokerRecord."""
    name = type(message).__name__
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(name)).upper()


def _to_json(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
