"""Each file by what it is, which its name tells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.dump import indexes
from barnabas.cli.operations.dump.decoders import Decoder
from barnabas.cli.operations.dump.records import format_batch, format_records, read_batches
from barnabas.wire.errors import KafkaError


@dataclass(slots=True, frozen=True)
class DumpOptions:
    """What is to be told of files."""

    decode: Decoder | None = None
    """Reads keys and values; None leaves them out."""
    deep: bool = False
    """Each record, not the batches alone."""
    record_metadata: bool = True
    only_verify: bool = False
    only_sanity: bool = False
    max_bytes: int = 2**31 - 1


def dump_files(paths: Sequence[Path], what: DumpOptions) -> Iterator[str]:
    """Line by line; at the end what does not fit together."""
    findings = indexes.IndexProblems()
    for path in paths:
        yield f"Dumping {path}"
        yield from _lines(path, what, findings)
    yield from findings.lines()


def _lines(path: Path, what: DumpOptions, findings: indexes.IndexProblems) -> Iterator[str]:
    checks = {"only_verify": what.only_verify, "only_sanity": what.only_sanity}
    match path.suffix:
        case ".log":
            yield f"Log starting offset: {_base_offset(path)}"
            yield from _records(path, what)
        case ".checkpoint":
            end, _, epoch = path.stem.partition("-")
            yield f"Snapshot end offset: {int(end)}, epoch: {int(epoch)}"
            yield from _records(path, what)
        case ".index":
            yield from indexes.dump_offset_index(path, findings, **checks)
        case ".timeindex":
            yield from indexes.dump_time_index(path, findings, **checks)
        case ".txnindex":
            yield from indexes.dump_transaction_index(path)
        case ".snapshot":
            yield from indexes.dump_producer_snapshot(path)
        case _:
            yield f"Ignoring unknown file {path}"


def _records(path: Path, what: DumpOptions) -> Iterator[str]:
    try:
        end = 0
        for position, header, content in read_batches(path, what.max_bytes):
            yield format_batch(position, header, content)
            if what.deep or what.decode is not None:
                yield from format_records(
                    header, content, what.decode, with_metadata=what.record_metadata
                )
            end = position + header.size_bytes
    except KafkaError as corrupt:
        yield f"Found a malformed batch after position {end}: {corrupt.message}"
        return
    trailing_bytes = min(path.stat().st_size, what.max_bytes) - end
    if trailing_bytes and what.max_bytes > path.stat().st_size:
        yield f"Found {trailing_bytes} invalid bytes at the end of {path.name}"


def _base_offset(path: Path) -> int:
    return int(path.name.partition(".")[0])
