"""One set of files for two brokers: what Barnabas writes Kafka reads, and the other way round."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker, peer
from tests.conformance.clients.client import EARLIEST, BrokerError, Code, Producing, Received, Sent
from tests.conformance.clients.confluent import ConfluentClient
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS = 2
RECORDS = 900
DELETED = 40


@dataclass(slots=True, frozen=True)
class Written:
    """A directory that a broker filled and left cleanly, and the records it answered with."""

    directory: Path
    records: dict[int, list[Received]]
    cluster_id: str


@pytest.fixture(scope="module", params=[BrokerProcess, PeerBroker], ids=["barnabas", "kafka"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    broker: Broker = request.param(tmp_path_factory.mktemp("written"))
    broker.start()
    try:
        fill(broker.bootstrap)
        records, cluster_id = contents(broker.bootstrap)
    finally:
        broker.stop()
    return Written(broker.directory, records, cluster_id)


def fill(bootstrap: str) -> None:
    """Every codec, sequences, headers, rolled segments, a moved start, settings, a deletion."""
    client = ConfluentClient(bootstrap)
    client.create_topic("kept", PARTITIONS, configs={"segment.bytes": "1048576"})
    client.create_topic("dropped")
    for compression in client.compressions:
        sent = [
            Sent(b"%d" % n + bytes(4000), b"k%d" % n, [("n", b"%d" % n)], partition=n % PARTITIONS)
            for n in range(RECORDS)
        ]
        client.produce("kept", sent, Producing(compression=compression, idempotent=True))
    client.produce("kept", [Sent(None, b"tombstone")])
    client.delete_records("kept", DELETED, partition=1)
    client.change_topic_config("kept", "retention.ms", "SET", "99999999")
    client.create_partitions("kept", PARTITIONS + 1)
    client.delete_topic("dropped")
    client.close()


def contents(bootstrap: str) -> tuple[dict[int, list[Received]], str]:
    """Everything that can be read from `kept`, with its settings as they must be."""
    client = ConfluentClient(bootstrap)
    wait_until(lambda: is_led(client), "the partitions have leaders")
    ends = {index: client.ends("kept", partition=index) for index in range(PARTITIONS + 1)}
    assert ends[1][0] == DELETED
    assert ends[2] == (0, 0)
    count = sum(end - first for first, end in ends.values())
    starts = dict.fromkeys(range(PARTITIONS + 1), EARLIEST)
    records = client.fetch_all("kept", starts, count)
    assert client.topic_configs("kept")["retention.ms"].value == "99999999"
    assert "dropped" not in client.topics()
    cluster_id = client.describe_cluster().cluster_id
    client.close()
    return records, cluster_id


def is_led(client: ConfluentClient) -> bool:
    """Whether the partitions answer: a broker that starts announces itself before it leads."""
    try:
        return bool([client.ends("kept", partition=index) for index in range(PARTITIONS + 1)])
    except BrokerError as refused:
        if refused.code != Code.NOT_LEADER_OR_FOLLOWER:
            raise
        return False


class TestDumpLog:
    """kafka-dump-log finds nothing wrong in any file."""

    COMPLAINTS = ("Mismatch", "not found", "Non-consecutive", "rror", "xception", "orrupt")

    def test_segments_and_indexes(self, written: Written) -> None:
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

    def test_the_metadata_log_and_its_snapshots(self, written: Written) -> None:
        folder = written.directory / "log" / "__cluster_metadata-0"
        files = sorted([*folder.glob("*.log"), *folder.glob("*.checkpoint")])
        printed = self.dump(files, "--cluster-metadata-decoder")
        for record in "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD":
            assert f'"type":"{record}"' in printed

    def dump(self, files: list[Path], *flags: str) -> str:
        named = ",".join(map(str, files))
        printed = peer("tool", "dump-log", *flags, "--files", named, deadline_s=90)
        said = [line for line in printed.splitlines() if any(c in line for c in self.COMPLAINTS)]
        assert said == []
        return printed


@pytest.mark.parametrize("reader", [PeerBroker, BrokerProcess], ids=["kafka", "barnabas"])
def test_a_directory_is_taken_over_and_goes_on(written: Written, reader: type[Broker]) -> None:
    """First by the other broker, then by the first again, each adding a record of its own."""
    broker = reader(written.directory)
    broker.start()
    try:
        records, cluster_id = contents(broker.bootstrap)
        assert cluster_id == written.cluster_id
        for partition, before in written.records.items():
            assert records[partition][: len(before)] == before
        client = ConfluentClient(broker.bootstrap)
        end = client.ends("kept")[1]
        assert client.produce("kept", [Sent(b"added")], Producing(idempotent=True)) == [end]
        assert client.produce(f"new-{reader.__name__}", [Sent(b"first")]) == [0]
        client.close()
    finally:
        broker.stop()
