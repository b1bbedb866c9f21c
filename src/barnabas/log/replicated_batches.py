"""The batches that a follower received from its leader: validated, and grouped for writing."""

from collections.abc import Iterator, Sequence

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    CRC_END,
    HEADER_BYTES,
    LENGTH_END,
    BatchHeader,
    CorruptBatch,
    read_header,
)
from barnabas.wire.records.checksum import crc32c

ANY_EPOCH = 2**31 - 1

_MAX_BASE_OFFSET = 2**63 - 2**32  # no offset after it can leave 64 bits


def validate_batches(
    batches: memoryview, end_offset: int, name: str, leader_epoch: int = ANY_EPOCH
) -> list[BatchHeader]:
    """Returns the headers of the whole batches, which are valid and in order from `end_offset` on.

    A batch of a later epoch than the leader's own cannot come from it: it is left out, with
    everything after it. The checksum does not cover the epoch.
    """
    headers = []
    position, size_bytes = 0, len(batches)
    while size_bytes - position >= HEADER_BYTES:
        header = read_header(batches, position)
        end = position + header.length + LENGTH_END
        if end > size_bytes or header.leader_epoch > leader_epoch:
            break
        base_offset, last_offset_delta = header.base_offset, header.last_offset_delta
        if crc32c(batches[position + CRC_END : end]) != header.crc:
            raise CorruptBatch(f"{name}: the batch at offset {base_offset} is damaged.")
        if not end_offset <= base_offset <= _MAX_BASE_OFFSET or last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{name}: a batch of offsets {base_offset} to {base_offset + last_offset_delta} "
                f"cannot follow offset {end_offset - 1}.",
            )
        headers.append(header)
        end_offset = base_offset + last_offset_delta + 1
        position = end
    return headers


def group_for_writes(
    headers: Sequence[BatchHeader], max_bytes: int
) -> Iterator[tuple[int, int, Sequence[BatchHeader]]]:
    """Yields start, end and headers of groups of at most `max_bytes`, each for one write."""
    first, start, end = 0, 0, 0
    for number, header in enumerate(headers):
        size_bytes = header.length + LENGTH_END
        if number > first and end + size_bytes - start > max_bytes:
            yield start, end, headers[first:number]
            first, start = number, end
        end += size_bytes
    if headers:
        yield start, end, headers[first:]
