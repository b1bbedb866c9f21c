"""Dumping the indexes of a segment, and verifying them against the log."""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from barnabas.cli.operations.dump.records import format_optional_long, read_batches
from barnabas.cli.operations.errors import CommandError
from barnabas.log.producers.snapshots import CorruptSnapshot, decode
from barnabas.log.segments.index import OffsetIndex, TimeIndex, TransactionIndex
from barnabas.log.segments.log_files import LOG
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import HEADER_BYTES, BatchHeader, read_header


class IndexProblems:
    """Entries of index files that do not match the log."""

    def __init__(self) -> None:
        self.mismatches: dict[Path, list[tuple[int, int]]] = {}
        self.not_found: dict[Path, list[tuple[int, int]]] = {}
        self.out_of_order: dict[Path, list[tuple[int, int]]] = {}

    def lines(self) -> Iterator[str]:
        for path, pairs in self.mismatches.items():
            yield f"Mismatches in :{path}"
            for indexed, log_offset in pairs:
                yield f"  Index offset: {indexed}, log offset: {log_offset}"
        for path, pairs in self.out_of_order.items():
            yield f"Found out of order timestamp in :{path}"
            for timestamp, before in pairs:
                yield f"  Index timestamp: {timestamp}, previously indexed timestamp: {before}"
        for path, pairs in self.not_found.items():
            yield f"The following indexed offsets are not found in :{path}"
            for indexed, log_offset in pairs:
                yield f"Indexed offset: {indexed}, found log offset: {log_offset}"


def dump_offset_index(
    path: Path, problems: IndexProblems, *, only_verify: bool, only_sanity: bool
) -> Iterator[str]:
    first_offset = base_offset(path)
    entries = list(_entries(path, OffsetIndex.ENTRY))
    if only_sanity or not entries:
        yield _sanity(path, bool(entries) and entries[-1][0] < 0)
        return
    log = path.with_suffix(LOG)
    for relative, position in entries:
        if position == 0 and relative == 0 and len(entries) > 1:
            break  # the rest of the file is preallocated
        offset = first_offset + relative
        header = _batch_at(log, position)
        if header is None or header.last_offset != offset:
            log_offset = -1 if header is None else header.last_offset
            problems.mismatches.setdefault(path, []).append((offset, log_offset))
        if not only_verify:
            yield f"offset: {offset} position: {position}"


def dump_time_index(
    path: Path, problems: IndexProblems, *, only_verify: bool, only_sanity: bool
) -> Iterator[str]:
    first_offset = base_offset(path)
    entries = list(_entries(path, TimeIndex.ENTRY))
    if only_sanity:
        yield _sanity(path, False)
        return
    last_offsets = _last_offsets(path.with_suffix(LOG))
    before = -1
    for timestamp, relative in entries:
        offset = first_offset + relative
        if timestamp < before:
            problems.out_of_order.setdefault(path, []).append((timestamp, before))
        if offset not in last_offsets:
            log_offset = min(
                (last_offset for last_offset in last_offsets if last_offset >= offset), default=-1
            )
            problems.not_found.setdefault(path, []).append((offset, log_offset))
        before = timestamp
        if not only_verify:
            yield f"timestamp: {timestamp} offset: {offset}"


def dump_transaction_index(path: Path) -> Iterator[str]:
    for version, producer_id, first, last, stable in _entries(path, TransactionIndex.ENTRY):
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first}"
            f" lastOffset: {last} lastStableOffset: {stable}"
        )


def dump_producer_snapshot(path: Path) -> Iterator[str]:
    try:
        producers = decode(path.read_bytes())
    except CorruptSnapshot as corrupt:
        yield f"{path} is corrupt: {corrupt}"
        return
    for producer in producers:
        first = (
            producer.transaction_first_offset if producer.transaction_first_offset >= 0 else None
        )
        line = (
            f"producerId: {producer.producer_id} producerEpoch: {producer.epoch}"
            f" coordinatorEpoch: {producer.coordinator_epoch}"
            f" currentTxnFirstOffset: {format_optional_long(first)}"
            f" lastTimestamp: {producer.last_timestamp}"
        )
        if producer.batches:
            batch = producer.batches[0]
            line += (
                f" firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence}"
                f" lastOffset: {batch.last_offset}"
                f" offsetDelta: {batch.last_offset - batch.first_offset}"
                f" timestamp: {batch.timestamp}"
            )
        yield line


def base_offset(path: Path) -> int:
    """Returns the base offset of a segment's file. Raises CommandError if its name has none."""
    name = path.name.partition(".")[0]
    if not name.isdecimal():
        raise CommandError(
            f"{path} is not a file of a segment: the name of one is its base offset, such as "
            "00000000000000000042.log"
        )
    return int(name)


def _entries(path: Path, entry: Struct) -> Iterator[tuple[int, ...]]:
    content = path.read_bytes()
    yield from entry.iter_unpack(content[: len(content) // entry.size * entry.size])


def _sanity(path: Path, is_broken: bool) -> str:
    if path.stat().st_size == 0:
        return f"{path} is empty."
    return f"{path} {'failed' if is_broken else 'passed'} sanity check."


def _batch_at(log: Path, position: int) -> BatchHeader | None:
    try:
        with log.open("rb") as file:
            file.seek(position)
            return read_header(file.read(HEADER_BYTES))
    except (OSError, KafkaError):
        return None


def _last_offsets(log: Path) -> set[int]:
    try:
        return {header.last_offset for _, header, _ in read_batches(log, log.stat().st_size)}
    except (OSError, KafkaError):
        return set()
