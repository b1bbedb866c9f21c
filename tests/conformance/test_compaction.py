"""Kafka's cleaner and ours clean copies of one log to the same files."""

import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.conformance.brokers import run_peer
from tests.conformance.random_logs import (
    DELETE_RETENTION_MS,
    TOPIC,
    Batch,
    CleanerSettings,
    KafkaCleaner,
    OurCleaner,
    RandomLog,
    segment_batches,
)
from tests.log.cleaner.cleaner_harness import CleanerHarness
from tests.log.log_test_directory import NOW_MS

from barnabas.log.segments.index import TransactionIndex
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

SEEDS = 5
STEPS = 300
ROUNDS = 6
SETTINGS = {
    "many segments": CleanerSettings(),
    "one segment from several": CleanerSettings(segment_bytes=6_000, codecs=[Codec.NONE]),
    "a full map": CleanerSettings(map_bytes=24 * 30),
    "small buffers": CleanerSettings(buffer_bytes=300),
}
KINDS = {
    "a removed plain batch",
    "a removed transactional batch",
    "a removed control batch",
    "an emptied batch",
    "an empty batch that was kept",
    "a tombstone with a horizon",
    "a tombstone that was removed",
    "a marker with a horizon",
}
"""What every set of random logs must have met."""


@pytest.fixture(scope="module")
def kafka_cleaner() -> Iterator[KafkaCleaner]:
    with KafkaCleaner() as cleaner:
        yield cleaner


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_both_cleaners_keep_the_same_batches(
    kafka_cleaner: KafkaCleaner, settings: CleanerSettings, memory_path: Path
) -> None:
    met: Counter[str] = Counter()
    for seed in range(SEEDS):
        met += clean_with_both(kafka_cleaner, settings, seed, memory_path / str(seed))
    kinds = KINDS | {f"a rebuilt {codec.name} batch" for codec in settings.codecs}
    assert met.keys() >= kinds, f"the logs are too simple: {met}"
    assert (met["a round that a full map ended"] > 0) == settings.has_small_map


def test_only_kafka_takes_a_committed_transaction_for_aborted_where_its_map_was_full(
    kafka_cleaner: KafkaCleaner, memory_path: Path
) -> None:
    """A cleaning begins inside a segment, because the map of the one before was full there.

    Kafka begins to read there, after the marker of an aborted transaction, and takes the next
    transaction of that producer for the aborted one. It does not map its keys, so that their older
    records stay. Here the segment is read from its start.
    """
    settings = CleanerSettings(map_bytes=24 * 5)  # four keys
    written = CleanerHarness(memory_path / "written", settings.log_config)
    written.write((b"stale", b"old"))
    written.roll()
    written.write_in_transaction((b"aborted", b"1"))
    written.end_transaction(committed=False)
    written.write_each(*((b"k%d" % number, bytes(200)) for number in range(4)))
    written.write_in_transaction((b"stale", b"new"), sequence=1)
    written.end_transaction(committed=True)
    written.roll()
    end_offset = written.log.log_end_offset
    written.stop()
    ours, theirs = open_copies(kafka_cleaner, settings, memory_path)
    for first_dirty_offset, next_dirty_offset in ((0, 6), (6, end_offset)):
        assert ours.clean(first_dirty_offset, end_offset, NOW_MS) == next_dirty_offset
        copy = theirs / f"from-{first_dirty_offset}"
        assert (
            kafka_cleaner.clean(first_dirty_offset, end_offset, NOW_MS, copy) == next_dirty_offset
        )
    assert stale_values(ours.folder) == [b"new"]
    assert stale_values(copy) == [b"old", b"new"]
    ours.close()


def stale_values(folder: Path) -> list[bytes | None]:
    records = (record for _, records in all_batches(folder) for record in records)
    return [record.value for record in records if record.key == b"stale"]


@pytest.fixture(scope="module")
def cleaned_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Random logs that we have cleaned in several rounds."""
    folders = []
    for seed in range(3):
        path = tmp_path_factory.mktemp("cleaned")
        RandomLog(path, seed, CleanerSettings()).write(STEPS)
        ours = OurCleaner(path, CleanerSettings())
        first_dirty_offset, now_ms = 0, NOW_MS
        for _ in range(3):
            bases = [segment.base_offset for segment in ours.log.segments.ordered]
            ends = [base for base in bases if base > first_dirty_offset]
            first_dirty_offset = ours.clean(first_dirty_offset, ends[len(ends) // 2], now_ms)
            now_ms += DELETE_RETENTION_MS + 1
        ours.close()
        folders.append(ours.folder)
    return folders


BATCH_LINE = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (\S+) .* producerId: (\S+) "
    r"producerEpoch: (\S+) .* isTransactional: (\w+) isControl: (\w+) deleteHorizonMs: "
    r"OptionalLong(\S+) .* compresscodec: (\w+) crc: \d+ isvalid: true"
)
PROBLEM = re.compile("[Mm]ismatch|not found|Non-consecutive|rror|xception|orrupt|isvalid: false")
RECORD_LINE = re.compile(r"\| offset: (\d+) \w+: (\d+) keySize: (\S+) valueSize: (\S+) ")


def test_kafka_dump_log_reads_the_records_that_we_kept(cleaned_folders: list[Path]) -> None:
    """The tool prints every batch and record, and finds no problem in any index."""
    printed = dump_log(cleaned_folders, "--print-data-log", "--deep-iteration")
    batches = [batch for folder in cleaned_folders for batch in all_batches(folder)]
    assert {header.codec for header, _ in batches} == set(Codec)
    assert any(header.has_delete_horizon for header, _ in batches)
    assert any(not records for _, records in batches)
    assert BATCH_LINE.findall(printed) == [described_batch(header) for header, _ in batches]
    assert RECORD_LINE.findall(printed) == [
        described_record(record) for _, records in batches for record in records
    ]
    assert "version: 0 producerId: " in printed  # the transaction indexes


def test_kafka_dump_log_finds_the_indexes_of_cleaned_segments_sane(
    cleaned_folders: list[Path],
) -> None:
    printed = dump_log(cleaned_folders, "--index-sanity-check")
    indexes = [path for folder in cleaned_folders for path in folder.glob("*index")]
    checked = [path for path in indexes if path.suffix in (".index", ".timeindex")]
    passed = re.findall("passed sanity check.|index is empty.", printed)
    assert len(passed) == len(checked)


def dump_log(folders: Sequence[Path], *flags: str) -> str:
    suffixes = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    files = [
        path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in suffixes
    ]
    assert {path.suffix for path in files} == suffixes
    named = ",".join(map(str, files))
    printed = run_peer("tool", "dump-log", *flags, "--files", named, deadline_s=90)
    assert [line for line in printed.splitlines() if PROBLEM.search(line)] == []
    return printed


def described_batch(header: BatchHeader) -> tuple[str, ...]:
    """Returns the fields of a batch as the tool prints them."""
    horizon_ms = header.delete_horizon_ms
    values = (
        header.base_offset,
        header.last_offset,
        header.record_count,
        header.base_sequence,
        header.producer_id,
        header.producer_epoch,
        str(header.is_transactional).lower(),
        str(header.is_control).lower(),
        ".empty" if horizon_ms is None else f"[{horizon_ms}]",
        header.codec.name.lower(),
    )
    return tuple(map(str, values))


def described_record(record: Record) -> tuple[str, ...]:
    sizes = (-1 if cell is None else len(cell) for cell in (record.key, record.value))
    return tuple(map(str, (record.offset, record.timestamp, *sizes)))


def clean_with_both(
    kafka_cleaner: KafkaCleaner, settings: CleanerSettings, seed: int, path: Path
) -> Counter[str]:
    """Cleans a random log in several rounds; returns what was met, see `KINDS`."""
    RandomLog(path / "written", seed, settings, reuse_producers=not settings.has_small_map).write(
        STEPS
    )
    ours, theirs = open_copies(kafka_cleaner, settings, path)
    met: Counter[str] = Counter()
    moments = random.Random(seed)
    first_dirty_offset, now_ms = 0, NOW_MS
    for number in range(ROUNDS):
        before = all_batches(ours.folder)
        bases = [segment.base_offset for segment in ours.log.segments.ordered]
        ends = [base for base in bases if base > first_dirty_offset]
        end_offset = moments.choice(ends[: max(len(ends) // (ROUNDS - number), 1)])
        copy = theirs / str(number)
        their_offset = kafka_cleaner.clean(first_dirty_offset, end_offset, now_ms, copy)
        first_dirty_offset = ours.clean(first_dirty_offset, end_offset, now_ms)
        assert first_dirty_offset == their_offset
        # Libraries compress to different sizes, by which segments are grouped.
        assert_equal_logs(ours.folder, copy, has_equal_groups=settings.codecs == [Codec.NONE])
        met["a round that a full map ended"] += first_dirty_offset < end_offset
        count_kinds(before, all_batches(ours.folder), met)
        now_ms += moments.choice([1, DELETE_RETENTION_MS - 1, DELETE_RETENTION_MS + 1])
    ours.close()
    return met


def open_copies(
    kafka_cleaner: KafkaCleaner, settings: CleanerSettings, path: Path
) -> tuple[OurCleaner, Path]:
    """Opens copies of the log in "written"; returns our cleaner and a path for Kafka's copies."""
    ours = OurCleaner(shutil.copytree(path / "written", path / "barnabas"), settings)
    theirs = shutil.copytree(path / "written", path / "kafka") / f"{TOPIC}-0"
    assert kafka_cleaner.open(theirs, settings) == ours.log.log_end_offset
    return ours, path / "cleaned-by-kafka"


def count_kinds(before: Sequence[Batch], after: Sequence[Batch], met: Counter[str]) -> None:
    """Counts what a cleaning has done."""
    left = {header.base_offset: (header, records) for header, records in after}
    for header, records in before:
        kind = "control" if header.is_control else "transactional" * header.is_transactional
        new_header, new_records = left.get(header.base_offset, (None, []))
        if new_header is None:
            met[f"a removed {kind or 'plain'} batch"] += 1
            continue
        is_smaller = len(new_records) < len(records)
        met[f"a rebuilt {header.codec.name} batch"] += is_smaller and bool(new_records)
        met["an emptied batch"] += is_smaller and not new_records
        met["an empty batch that was kept"] += not records
        if new_header.has_delete_horizon and not header.has_delete_horizon:
            met[f"a {'marker' if header.is_control else 'tombstone'} with a horizon"] += 1
        had_tombstone = any(record.value is None for record in records)
        has_tombstone = any(record.value is None for record in new_records)
        if header.has_delete_horizon and new_records and had_tombstone and not has_tombstone:
            met["a tombstone that was removed"] += 1


def all_batches(folder: Path) -> list[Batch]:
    return [batch for batches in segment_batches(folder).values() for batch in batches]


def assert_equal_logs(ours: Path, theirs: Path, *, has_equal_groups: bool) -> None:
    """The batches are equal, and so are the aborted transactions in the indexes."""
    our_segments, their_segments = segment_batches(ours), segment_batches(theirs)
    if has_equal_groups:
        assert list(our_segments) == list(their_segments)
    assert all_batches(ours) == all_batches(theirs)
    assert aborted_transactions(ours) == aborted_transactions(theirs)


def aborted_transactions(folder: Path) -> list[tuple[int, ...]]:
    content = b"".join(path.read_bytes() for path in sorted(folder.glob("*.txnindex")))
    return list(TransactionIndex.ENTRY.iter_unpack(content))
