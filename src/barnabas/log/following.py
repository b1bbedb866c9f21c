"""Batches that a follower got from its leader, checked and put together for writing."""

from collections.abc import Iterator, Sequence

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    BatchHeader,
    CorruptBatch,
    Readable,
    crc_is_valid,
    iterate_batches,
)


def check(batches: Readable, end_offset: int, name: str) -> list[tuple[int, BatchHeader]]:
    """The whole batches, all valid and in order from `end_offset` on, with their positions."""
    found = []
    for position, header in iterate_batches(batches):
        if not crc_is_valid(batches, position, header):
            raise CorruptBatch(f"{name}: the batch at offset {header.base_offset} is damaged.")
        if header.base_offset < end_offset or header.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{name}: a batch of offsets {header.base_offset} to {header.last_offset} cannot "
                f"follow offset {end_offset - 1}.",
            )
        found.append((position, header))
        end_offset = header.next_offset
    return found


def group(
    found: Sequence[tuple[int, BatchHeader]], max_bytes: int
) -> Iterator[tuple[int, int, list[BatchHeader]]]:
    """Start, end and headers of stretches of at most `max_bytes`, each for one write."""
    headers: list[BatchHeader] = []
    start = 0
    for position, header in found:
        if headers and position + header.size_bytes - start > max_bytes:
            yield start, position, headers
            headers, start = [], position
        headers.append(header)
    if headers:
        yield start, position + header.size_bytes, headers
