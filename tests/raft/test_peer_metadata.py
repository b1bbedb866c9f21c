"""Metadata in Kafka's own files: the real Kafka's tools read ours, and we read the real Kafka's."""

import re
import shutil
from pathlib import Path

import pytest
from tests.conformance.brokers import PeerBroker, is_peer_installed, run_peer
from tests.node.controller_directory import ControllerDirectory, RunningController, idle

from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not is_peer_installed(), reason="the real Kafka is not here: set PEERS"),
]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> ControllerDirectory:
    """A directory that has seen everything a controller writes, snapshots and restarts too."""
    directory = ControllerDirectory(
        tmp_path_factory.mktemp("ours") / "log",
        metadata_log_max_record_bytes_between_snapshots="3000",
    )

    async def happens(scenario: RunningController) -> None:
        await scenario.register_broker()
        for number in range(60):
            await scenario.create_topics(f"topic-{number}", partitions=3)
            directory.now_ms += 1000
            scenario.node.snapshots.maintain(directory.now_ms)
        await scenario.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="topic-0")]))

    directory.run(happens)
    directory.run(idle)
    return directory


def dump(*paths: Path) -> str:
    files = ",".join(map(str, paths))
    return run_peer("tool", "dump-log", "--cluster-metadata-decoder", "--files", files)


def payloads(printed: str, kind: str) -> list[str]:
    return re.findall(rf'payload: {{"type":"{kind}".*', printed)


def test_kafka_reads_our_log(ours: ControllerDirectory) -> None:
    printed = dump(*sorted(ours.folder.glob("*.log")))
    assert "isvalid: false" not in printed
    assert "error" not in printed.lower()
    assert len(payloads(printed, "TOPIC_RECORD")) == 60
    assert len(payloads(printed, "PARTITION_RECORD")) == 180
    assert len(payloads(printed, "REMOVE_TOPIC_RECORD")) == 1
    assert printed.count("LeaderChange: ") == 2
    assert printed.count("KRaftVoters ") == 2  # every start has another port


def test_kafka_reads_our_snapshots(ours: ControllerDirectory) -> None:
    snapshots = sorted(ours.folder.glob("*.checkpoint"))
    assert len(snapshots) > 2
    for path in (snapshots[0], snapshots[-1], ours.path / "bootstrap.checkpoint"):
        printed = dump(path)
        assert "isvalid: false" not in printed
        assert "SnapshotHeader " in printed
        assert "SnapshotFooter " in printed
    end_offset, _, epoch = snapshots[-1].stem.partition("-")
    newest = dump(snapshots[-1])
    assert f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}" in newest
    assert payloads(newest, "PARTITION_RECORD")


def test_the_metadata_log_of_kafka_builds_our_image(tmp_path: Path) -> None:
    kafka = PeerBroker(tmp_path / "kafka", settings={"metadata.max.idle.interval.ms": "0"})
    kafka.start()
    at = ("--bootstrap-server", kafka.bootstrap)
    run_peer("tool", "topics", *at, "--create", "--topic", "orders", "--partitions", "3")
    run_peer("tool", "topics", *at, "--create", "--topic", "gone")
    run_peer("tool", "topics", *at, "--delete", "--topic", "gone")
    run_peer(
        *("tool", "configs", *at, "--alter", "--entity-type", "topics"),
        *("--entity-name", "orders", "--add-config", "retention.ms=1000"),
    )
    kafka.stop()
    image = _taken_over(kafka.data, tmp_path / "ours")
    assert [topic.name for topic in image.topics] == ["orders"]
    orders = image.topics.by_name("orders")
    assert orders is not None
    assert {p.replicas for p in orders.partitions.values()} == {(1,)}
    assert image.config(2, "orders") == {"retention.ms": "1000"}
    assert image.features["metadata.version"] == 30
    assert image.brokers[1].endpoints[0].port == kafka.port


def _taken_over(directory: Path, scratch: Path) -> MetadataImage:
    shutil.copytree(directory, scratch / "kafka")
    return ControllerDirectory(scratch / "kafka", is_formatted=True).run(idle)
