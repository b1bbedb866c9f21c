"""The batches and records of a segment or metadata snapshot, as text and as JSON objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.operations.dump.decoders import Decoder
from barnabas.wire.as_json import as_json
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages import raft_records
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    BatchHeader,
    crc_is_valid,
    read_header,
)
from barnabas.wire.records.control import ControlType, read_control_type, read_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record
from barnabas.wire.schema import Message

_READ_BYTES = 1 << 20

_CONTROL: dict[ControlType, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", raft_records.LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", raft_records.SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", raft_records.SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", raft_records.KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", raft_records.VotersRecord),
}


def read_batches(path: Path, max_bytes: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Yields position, header and content of the complete batches of a file."""
    size_bytes = min(path.stat().st_size, max_bytes)
    position = 0
    with path.open("rb", buffering=_READ_BYTES) as file:
        while position + HEADER_BYTES <= size_bytes:
            file.seek(position)
            header = read_header(file.read(HEADER_BYTES))
            if position + header.size_bytes > size_bytes:
                break
            file.seek(position)
            yield position, header, file.read(header.size_bytes)
            position += header.size_bytes


def format_batch(position: int, header: BatchHeader, content: bytes) -> str:
    horizon = header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset}"
        f" count: {header.record_count} baseSequence: {header.base_sequence}"
        f" lastSequence: {header.last_sequence} producerId: {header.producer_id}"
        f" producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch}"
        f" isTransactional: {_boolean(header.is_transactional)}"
        f" isControl: {_boolean(header.is_control)}"
        f" deleteHorizonMs: {format_optional_long(horizon)}"
        f" position: {position} {_time_type(header)}: {header.max_timestamp}"
        f" size: {header.size_bytes} magic: {header.magic}"
        f" compresscodec: {header.codec.name.lower()} crc: {header.crc}"
        f" isvalid: {_boolean(crc_is_valid(content, 0, header))}"
    )


def format_records(
    header: BatchHeader, content: bytes, decode: Decoder | None, *, with_metadata: bool
) -> Iterator[str]:
    """Yields a line per record; without a decoder, keys and values are omitted."""
    time_type = _time_type(header)
    sequence = header.base_sequence
    for record in read_records(content):
        line = "|" if with_metadata else ""
        if with_metadata:
            names = ",".join(name for name, _ in record.headers)
            line += (
                f" offset: {record.offset} {time_type}: {record.timestamp}"
                f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
                f" sequence: {sequence} headerKeys: [{names}]"
            )
            if header.is_control:
                line += _control(record)
        if decode is not None and not header.is_control:
            key, payload = decode(record)
            contents = "" if key is None else f" key: {key}"
            contents += "" if payload is None else f" payload: {payload}"
            line = line + contents if with_metadata or not contents else f"|{contents}"
        if sequence >= 0:
            sequence += 1
        yield line


def format_optional_long(value: int | None) -> str:
    """Returns the text of a Java OptionalLong."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _control(record: Record) -> str:
    try:
        kind = read_control_type(record.key)
        marker = read_marker(record)
        if marker is not None:
            return f" endTxnMarker: {kind.name} coordinatorEpoch: {marker.coordinator_epoch}"
        if kind in _CONTROL and record.value is not None:
            name, message_type = _CONTROL[kind]
            version = int.from_bytes(record.value[:2])
            message, _ = message_type.read(record.value, version)
            fields = as_json(message, version)
            return f" {name} {json.dumps(fields, separators=(',', ':'))}"
    except KafkaError as malformed:
        return f" controlType: malformed ({malformed})"
    return f" controlType: {kind.name}({int(kind)})"


def _time_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.attributes & APPEND_TIME_BIT else "CreateTime"


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _boolean(value: bool) -> str:
    return "true" if value else "false"


Row = dict[str, Any]


def batch_rows(path: Path, decode: Decoder | None, max_bytes: int) -> Iterator[Row]:
    """Yields an object per batch, with its records if there is a decoder."""
    try:
        for position, header, content in read_batches(path, max_bytes):
            row = _batch(path, position, header)
            row["is_valid"] = crc_is_valid(content, 0, header)
            if decode is not None:
                row["records"] = list(_records(header, content, decode))
            yield row
    except KafkaError as corrupt:
        yield {"file": str(path), "error": corrupt.message}


def _batch(path: Path, position: int, header: BatchHeader) -> Row:
    return {
        "file": str(path),
        "position": position,
        "size": header.size_bytes,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "codec": header.codec.name.lower(),
    }


def _records(header: BatchHeader, content: bytes, decode: Decoder) -> Iterator[Row]:
    for record in read_records(content):
        key, value = (None, None) if header.is_control else decode(record)
        yield {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _parse_if_json(key),
            "value": _parse_if_json(value),
            "headers": [name for name, _ in record.headers],
        }


def _parse_if_json(text: str | None) -> Any:
    """Parses text that is JSON, to avoid JSON inside a string."""
    if text is None or not text.startswith("{"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
