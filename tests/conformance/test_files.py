"""Barnabas and Kafka read each other's log directories."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, run_peer
from tests.conformance.clients.client import (
    EARLIEST,
    BrokerError,
    ErrorCode,
    ProducerOptions,
    ReceivedRecord,
    SentRecord,
)
from tests.conformance.clients.confluent import ConfluentClient
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS = 2
RECORDS = 900
DELETED = 40


@dataclass(slots=True, frozen=True)
class WrittenDirectory:
    """The directory of a broker after a clean shutdown, and the records that it returned."""

    directory: Path
    records: dict[int, list[ReceivedRecord]]
    cluster_id: str


@pytest.fixture(scope="module", params=[BrokerProcess, PeerBroker], ids=["barnabas", "kafka"])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> WrittenDirectory:
    broker: Broker = request.param(tmp_path_factory.mktemp("written"))
    broker.start()
    try:
        write_data(broker.bootstrap)
        records, cluster_id = read_contents(broker.bootstrap)
    finally:
        broker.stop()
    return WrittenDirectory(broker.directory, records, cluster_id)


def write_data(bootstrap: str) -> None:
    """Writes every codec, sequences, headers, several segments, deleted records, settings."""
    client = ConfluentClient(bootstrap)
    client.create_topic("kept", PARTITIONS, configs={"segment.bytes": "1048576"})
    client.create_topic("dropped")
    for compression in client.compressions:
        sent = [
            SentRecord(
                b"%d" % n + bytes(4000), b"k%d" % n, [("n", b"%d" % n)], partition=n % PARTITIONS
            )
            for n in range(RECORDS)
        ]
        client.produce("kept", sent, ProducerOptions(compression=compression, idempotent=True))
    client.produce("kept", [SentRecord(None, b"tombstone")])
    client.delete_records("kept", DELETED, partition=1)
    client.change_topic_config("kept", "retention.ms", "SET", "99999999")
    client.create_partitions("kept", PARTITIONS + 1)
    client.delete_topic("dropped")
    client.close()


def read_contents(bootstrap: str) -> tuple[dict[int, list[ReceivedRecord]], str]:
    """Returns all records of `kept`, and checks its settings."""
    client = ConfluentClient(bootstrap)
    wait_until(lambda: have_leaders(client), "the partitions have leaders")
    watermarks = {
        index: client.watermarks("kept", partition=index) for index in range(PARTITIONS + 1)
    }
    assert watermarks[1][0] == DELETED
    assert watermarks[2] == (0, 0)
    count = sum(end - first for first, end in watermarks.values())
    starts = dict.fromkeys(range(PARTITIONS + 1), EARLIEST)
    records = client.fetch_all("kept", starts, count)
    assert client.topic_configs("kept")["retention.ms"].value == "99999999"
    assert "dropped" not in client.topics()
    cluster_id = client.describe_cluster().cluster_id
    client.close()
    return records, cluster_id


def have_leaders(client: ConfluentClient) -> bool:
    """Whether the partitions have leaders: a starting broker registers before it leads."""
    try:
        return bool([client.watermarks("kept", partition=index) for index in range(PARTITIONS + 1)])
    except BrokerError as exception:
        if exception.code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise
        return False


class TestDumpLog:
    """kafka-dump-log finds no problem in any file."""

    PROBLEMS = ("Mismatch", "not found", "Non-consecutive", "rror", "xception", "orrupt")

    def test_segments_and_indexes(self, written: WrittenDirectory) -> None:
        data = written.directory / "log"
        files = [
            file
            for partition in range(PARTITIONS)
            for file in sorted((data / f"kept-{partition}").iterdir())
            if file.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
        ]
        assert len([file for file in files if file.suffix == ".log"]) > PARTITIONS
        assert any(file.suffix == ".snapshot" for file in files)
        printed = self.dump(files, "--deep-iteration")
        assert printed.count("| offset:") >= RECORDS

    def test_the_metadata_log_and_its_snapshots(self, written: WrittenDirectory) -> None:
        folder = written.directory / "log" / "__cluster_metadata-0"
        files = sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])
        printed = self.dump(files, "--cluster-metadata-decoder")
        for record in "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD":
            assert f'"type":"{record}"' in printed

    def dump(self, files: list[Path], *flags: str) -> str:
        named = ",".join(map(str, files))
        printed = run_peer("tool", "dump-log", *flags, "--files", named, deadline_s=90)
        problems = [line for line in printed.splitlines() if any(c in line for c in self.PROBLEMS)]
        assert problems == []
        return printed


@pytest.mark.parametrize("reader", [PeerBroker, BrokerProcess], ids=["kafka", "barnabas"])
def test_a_broker_continues_on_the_directory_of_the_other(
    written: WrittenDirectory, reader: type[Broker]
) -> None:
    """Both brokers start on the directory in turn and add a record."""
    broker = reader(written.directory)
    broker.start()
    try:
        records, cluster_id = read_contents(broker.bootstrap)
        assert cluster_id == written.cluster_id
        for partition, before in written.records.items():
            assert records[partition][: len(before)] == before
        client = ConfluentClient(broker.bootstrap)
        end = client.watermarks("kept")[1]
        assert client.produce("kept", [SentRecord(b"added")], ProducerOptions(idempotent=True)) == [
            end
        ]
        assert client.produce(f"new-{reader.__name__}", [SentRecord(b"first")]) == [0]
        client.close()
    finally:
        broker.stop()
