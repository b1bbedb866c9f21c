"""What a consumer with isolation.level=read_committed sees of a log."""

from collections.abc import Iterable

from barnabas.log import Log
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record


def committed_records(
    log: Log, offset: int | None = None, *, high_watermark: int | None = None, max_bytes: int = 500
) -> list[Record]:
    """Returns the committed records from an offset on.

    It does what a consumer does: each fetch comes with the aborted transactions of its range, and
    a batch of such a producer is skipped until the marker that ends its transaction.
    """
    upto = log.last_stable_offset(log.log_end_offset if high_watermark is None else high_watermark)
    offset = log.log_start_offset if offset is None else offset
    records: list[Record] = []
    while offset < upto and (piece := log.read(offset, max_bytes, upto=upto)) is not None:
        content = memoryview(piece.read())
        aborted = sorted(
            (first_offset, producer_id)
            for producer_id, first_offset in log.aborted_transactions(offset, piece.next_offset)
        )
        aborting: set[int] = set()
        for at, header in iterate_batches(content):
            while aborted and aborted[0][0] <= header.last_offset:
                aborting.add(aborted.pop(0)[1])
            batch = read_records(content, at)
            if header.is_control:
                marker = read_marker(batch[0]) if batch else None
                if marker is not None and not marker.committed:
                    aborting.discard(header.producer_id)
            elif not header.is_transactional or header.producer_id not in aborting:
                records += [record for record in batch if record.offset >= offset]
        offset = piece.next_offset
    return records


def last_values(records: Iterable[Record]) -> dict[bytes | None, bytes]:
    """Returns the last value of each key that is not deleted, as a table of the topic has it."""
    last = {record.key: record.value for record in records}
    return {key: value for key, value in last.items() if value is not None}
