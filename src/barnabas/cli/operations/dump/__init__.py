"""The contents of partition files as text, as kafka-dump-log prints them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.dump import indexes
from barnabas.cli.operations.dump.decoders import Decoder
from barnabas.cli.operations.dump.records import format_batch, format_records, read_batches
from barnabas.cli.operations.errors import CommandError, UnreadableFileError
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
    """Yields the lines of each file, and at the end the problems of indexes.

    Raises CommandError for a file that cannot be read, or whose name has no offset.
    """
    problems = indexes.IndexProblems()
    for path in paths:
        yield f"Dumping {path}"
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise UnreadableFileError(path, error) from None
        yield from _dump_file(path, options, problems)
    yield from problems.lines()


def _dump_file(path: Path, options: DumpOptions, problems: indexes.IndexProblems) -> Iterator[str]:
    checks = {"only_verify": options.only_verify, "only_sanity": options.only_sanity}
    match path.suffix:
        case ".log":
            yield f"Log starting offset: {indexes.base_offset(path)}"
            yield from _dump_records(path, options)
        case ".checkpoint":
            end_offset, epoch = _snapshot_id(path)
            yield f"Snapshot end offset: {end_offset}, epoch: {epoch}"
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


def _snapshot_id(path: Path) -> tuple[int, int]:
    end_offset, _, epoch = path.stem.partition("-")
    if not end_offset.isdecimal() or not epoch.isdecimal():
        raise CommandError(
            f"{path} is not a metadata snapshot: the name of one is its end offset and epoch, such "
            "as 00000000000000000042-0000000007.checkpoint"
        )
    return int(end_offset), int(epoch)
