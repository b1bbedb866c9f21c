"""The batches and records of a file as objects, for programs."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.work.dump.decoders import Decoder
from barnabas.cli.work.dump.records import batches
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import BatchHeader, crc_is_valid
from barnabas.wire.records.read import read_records

Row = dict[str, Any]


def batch_rows(path: Path, decode: Decoder | None, max_bytes: int) -> Iterator[Row]:
    """A row a batch, with its records where there is a decoder for them."""
    try:
        for position, header, content in batches(path, max_bytes):
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
            "key": _opened(key),
            "value": _opened(value),
            "headers": [name for name, _ in record.headers],
        }


def _opened(told: str | None) -> Any:
    """What is JSON already is not put into a text again."""
    if told is None or not told.startswith("{"):
        return told
    try:
        return json.loads(told)
    except ValueError:
        return told
