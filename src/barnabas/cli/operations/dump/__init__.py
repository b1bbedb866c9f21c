"""The contents of partition files as text, as kafka-dump-log prints them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.dump import indexes
from barnabas.cli.operations.dump.decoders import Decoder
from barnabas.cli.operations.dump.records import format_batch, format_records, read_batches
from barnabas.wire.errors import KafkaError


@dataclass(slots=True, frozen=True)
class DumpOptions:
    """What to print of files."""

    decode: Decoder | None = None
    """Decodes keys and values; None omits them."""
    deep: bool = False
    """Print each record, not only batches."""
    record_metadata: bool = True
    only_verify: bool = False
    only_sanity: bool = False
    max_bytes: int = 2**31 - 1


def dump_files(paths: Sequence[Path], options: DumpOptions) -> Iterator[str]:
    """Yields the lines of each file, and at the end the problems of indexes."""
    problems = indexes.IndexProblems()
    for path in paths:
        yield f"Dumping {path}"
        yield from _dump_file(path, options, problems)
    yield from problems.lines()


def _dump_file(path: Path, options: DumpOptions, problems: indexes.IndexProblems) -> Iterator[str]:
    checks = {"only_verify": options.only_verify, "only_sanity": options.only_sanity}
    match path.suffix:
        case ".log":
            yield f"Log starting offset: {_base_offset(path)}"
            yield from _dump_records(path, options)
        case ".checkpoint":
            end, _, epoch = path.stem.partition("-")
            yield f"Snapshot end offset: {int(end)}, epoch: {int(epoch)}"
            yield from _dump_records(path, options)
        case ".index":
            yield from indexes.dump_offset_index(path, problems, **checks)
        case ".timeindex":
            yield from indexes.dump_time_index(path, problems, **checks)
        case ".txnindex":
            yield from indexes.dump_transaction_index(path)
        case ".snapshot":
            yield from indexes.dump_producer_snapshot(path)
        case _:
            yield f"Ignoring unknown file {path}"


def _dump_records(path: Path, options: DumpOptions) -> Iterator[str]:
    try:
        end = 0
        for position, header, content in read_batches(path, options.max_bytes):
            yield format_batch(position, header, content)
            if options.deep or options.decode is not None:
                yield from format_records(
                    header, content, options.decode, with_metadata=options.record_metadata
                )
            end = position + header.size_bytes
    except KafkaError as corrupt:
        yield f"Found a malformed batch after position {end}: {corrupt.message}"
        return
    trailing_bytes = min(path.stat().st_size, options.max_bytes) - end
    if trailing_bytes and options.max_bytes > path.stat().st_size:
        yield f"Found {trailing_bytes} invalid bytes at the end of {path.name}"


def _base_offset(path: Path) -> int:
    return int(path.name.partition(".")[0])
