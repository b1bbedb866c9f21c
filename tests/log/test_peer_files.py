"""Our files under the real Kafka's own tools, and its files under ours."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.conformance.brokers import PeerBroker, is_peer_installed, run_peer
from tests.log.log_test_directory import (
    NOW_MS,
    LogTestDirectory,
    batch,
    marker,
    numbered,
    read_all,
    valid,
    write,
)
from tests.wait import wait_until

from barnabas.log import DirectoryInUse, Log, LogConfig, LogDirectory
from barnabas.log.directory.directory_files import DirectoryLock
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not is_peer_installed(), reason="the real Kafka is not here: set PEERS"),
]


def dump(*arguments: str) -> str:
    return run_peer("tool", "dump-log", *arguments)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition's folder with everything in it that a log can have."""
    log_dir = LogTestDirectory(tmp_path_factory.mktemp("ours"))
    log = log_dir.create(LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    for number in range(300):
        write_all_kinds(log, number)
    log_dir.stop()
    return log_dir.folder()


def write_all_kinds(log: Log, number: int) -> None:
    """Compressed and plain batches, times that go back and forth, transactions."""
    timestamp = NOW_MS + number * 1000 - (number % 7) * 3000
    records = [Record(0, timestamp + i, b"k%d" % i, bytes(50), []) for i in range(5)]
    log.append_as_leader(valid(build_batch(records, codec=Codec(number % 5))), 0, NOW_MS)
    log.append_as_leader(numbered(1, 0, number * 3, count=3, timestamp=timestamp), 0, NOW_MS)
    begun = batch(producer_id=2, epoch=0, sequence=number, transactional=True, timestamp=timestamp)
    write(log, begun)
    if number % 3 == 0:
        end = marker(2, 0, committed=number % 2 == 0, coordinator_epoch=number)
        log.append_as_leader(end, 0, NOW_MS, from_client=False)


def named(folder: Path, pattern: str) -> str:
    paths = sorted(str(path) for path in folder.glob(pattern))
    assert paths
    return ",".join(paths)


def test_kafka_finds_every_batch_of_our_logs_valid(ours: Path) -> None:
    said = dump("--files", named(ours, "*.log"), "--deep-iteration")
    assert len(list(ours.glob("*.log"))) > 3
    assert "isvalid: false" not in said
    assert "invalid bytes" not in said
    assert said.count("isvalid: true") == 300 * 3 + 100
    assert said.count("endTxnMarker: ABORT") == 50


def test_kafka_finds_our_indexes_sane(ours: Path) -> None:
    indexes = named(ours, "*.index")
    assert "Mismatches" not in dump("--files", indexes, "--verify-index-only")
    said = dump("--files", indexes, "--index-sanity-check")
    assert said.count("passed sanity check") == len(indexes.split(","))


def test_kafka_finds_our_time_indexes_right(ours: Path) -> None:
    said = dump("--files", named(ours, "*.timeindex"), "--verify-index-only")
    assert "Found timestamp mismatch" not in said
    assert "Found out of order timestamp" not in said
    assert "not found" not in said


def test_kafka_reads_our_snapshots(ours: Path) -> None:
    last = max(ours.glob("*.snapshot"))
    said = dump("--files", str(last))
    assert "producerId: 1 producerEpoch: 0" in said
    assert "lastSequence: 899 lastOffset: 2798 offsetDelta: 2" in said
    assert "currentTxnFirstOffset: OptionalLong[2790]" in said


def test_kafka_reads_our_indexes_of_aborted_transactions(ours: Path) -> None:
    said = dump("--files", named(ours, "*.txnindex"))
    assert said.count("producerId: 2") == 50


PLAIN = [b"%d" % number for number in range(500)]
LARGE = [b"%d" % number + bytes(9000) for number in range(600)]


def fill_kafka(bootstrap: str) -> None:
    """Small batches, rolled segments, committed, aborted and open transactions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [
        NewTopic("plain", 1, 1, config={"index.interval.bytes": "256"}),
        NewTopic("rolled", 1, 1, config={"segment.bytes": "1048576"}),
        NewTopic("transactions", 1, 1),
    ]
    for created in admin.create_topics(topics).values():
        created.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in PLAIN:
        producer.produce("plain", value)
        producer.poll(0)
    for value in LARGE:
        producer.produce("rolled", value)
    assert producer.flush(60) == 0
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})
    transactional.init_transactions(30)
    for number in range(7):
        transactional.begin_transaction()
        transactional.produce("transactions", b"%d" % number)
        transactional.flush(30)
        if number < 6:
            (transactional.abort_transaction if number % 2 else transactional.commit_transaction)(
                30
            )


@pytest.fixture(scope="module", params=["stop", "kill"])
def theirs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LogDirectory]:
    """A directory that the real Kafka left, by a clean stop or by kill -9."""
    broker = PeerBroker(tmp_path_factory.mktemp("theirs"))
    broker.start()
    try:
        fill_kafka(broker.bootstrap)
    finally:
        getattr(broker, request.param)()
    wait_until(lambda: is_unlocked(broker.data), "the JVM releases its files")
    directory = LogDirectory.open(broker.data)
    assert directory.was_clean_shutdown == (request.param == "stop")
    yield directory
    directory.close()
    shutil.rmtree(broker.directory)


def is_unlocked(path: Path) -> bool:
    try:
        DirectoryLock(str(path)).release()
    except DirectoryInUse:
        return False
    return True


def opened(directory: LogDirectory, topic: str) -> Log:
    topic_id = directory.topic_id_of(topic, 0)
    assert topic_id is not None
    return directory.open_log(topic, 0, topic_id)


def test_we_read_every_record_that_kafka_wrote(theirs: LogDirectory) -> None:
    assert [value for _, value in read_all(opened(theirs, "plain"))] == PLAIN
    assert [value for _, value in read_all(opened(theirs, "rolled"))] == LARGE
    assert opened(theirs, "rolled").latest_epoch >= 0


def test_we_find_kafkas_records_by_offset(theirs: LogDirectory) -> None:
    log = opened(theirs, "plain")
    for offset in range(0, 500, 13):
        piece = log.read(offset, 1, upto=log.log_end_offset)
        assert piece is not None
        assert offset < piece.next_offset


def test_we_know_kafkas_producers_and_transactions(theirs: LogDirectory) -> None:
    log = opened(theirs, "transactions")
    (producer,) = log.active_producers()
    assert producer.transaction_first_offset == log.producers.first_undecided_offset == 12
    aborted = log.aborted_transactions(0, log.log_end_offset)
    assert aborted == [(producer.producer_id, first) for first in (2, 6, 10)]
    (idempotent,) = opened(theirs, "plain").active_producers()
    assert idempotent.last_offset == 499


def test_the_metadata_log_of_kafka_is_whole(theirs: LogDirectory) -> None:
    log = opened(theirs, "__cluster_metadata")
    assert log.log_end_offset > 10
    assert log.read(0, 1 << 20, upto=log.log_end_offset) is not None


def test_kafka_finds_nothing_wrong_with_what_we_recovered(theirs: LogDirectory) -> None:
    for topic in ("plain", "rolled", "transactions"):
        log = opened(theirs, topic)
        log.close()
        folder = Path(log.path)
        assert "Mismatches" not in dump("--files", named(folder, "*.index"), "--verify-index-only")
        said = dump("--files", named(folder, "*.timeindex"), "--verify-index-only")
        assert "Found" not in said
