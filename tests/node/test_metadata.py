"""A controller responds once a change is durable, and has the change after a restart."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from tests.metadata.conftest import KAFKA_DIRECTORY
from tests.node.controller_directory import (
    ControllerDirectory,
    RunningController,
    idle,
    topic_names,
)

from barnabas.log import Flush
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import encode_record
from barnabas.metadata.image import MetadataImage
from barnabas.node import NodeError
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records


@pytest.fixture
def directory(tmp_path: Path) -> ControllerDirectory:
    return ControllerDirectory(tmp_path / "log")


def test_a_new_cluster_starts_with_the_records_that_kafka_writes(
    directory: ControllerDirectory,
) -> None:
    image = directory.run(idle)
    assert image.features["metadata.version"] == 30
    assert image.config(4, "") == {"min.insync.replicas": "1"}
    content = (directory.folder / f"{0:020}.log").read_bytes()
    batches = [(header, read_records(content, at)) for at, header in iterate_batches(content)]
    assert [read_control_type(record.key) for record in batches[0][1]] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]
    kafka = (KAFKA_DIRECTORY / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()
    theirs = [(header, read_records(kafka, at)) for at, header in iterate_batches(kafka)]
    assert [r.value for r in batches[0][1]][:2] == [r.value for r in theirs[0][1]][:2]
    # The same records; features other than metadata.version in an order of their own.
    assert sorted(r.value or b"" for r in batches[1][1]) == sorted(
        r.value or b"" for r in theirs[1][1]
    )
    assert batches[1][1][0].value == theirs[1][1][0].value
    assert batches[1][1][-1].value == theirs[1][1][-1].value
    state = json.loads((directory.folder / "quorum-state").read_text())
    assert state == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


@pytest.mark.parametrize("clean", [True, False])
def test_changes_with_a_response_survive_a_restart(
    directory: ControllerDirectory, clean: bool
) -> None:
    async def first(controller: RunningController) -> None:
        await controller.register_broker()
        await controller.create_topics("orders", "gone", partitions=3)
        await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))

    before = directory.run(first, clean=clean)
    after = directory.run(idle)
    assert topic_names(after) == {"orders"}
    assert after.topics == before.topics
    assert after.brokers == before.brokers


def test_a_response_comes_after_the_change_is_durable_applied_and_published(
    directory: ControllerDirectory,
) -> None:
    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        seen: list[set[str]] = []
        controller.subscribe(lambda delta, image: seen.append(topic_names(image)))
        flushed_to = controller.quorum.high_watermark
        await controller.create_topics("orders")
        assert controller.quorum.high_watermark > flushed_to
        assert controller.image.offset == controller.quorum.high_watermark - 1
        assert seen == [{"orders"}]

    directory.run(scenario)


def test_a_subscriber_gets_the_delta_of_a_change(directory: ControllerDirectory) -> None:
    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        deltas: list[MetadataDelta] = []
        controller.subscribe(lambda delta, image: deltas.append(delta))
        await controller.create_topics("orders", partitions=2)
        (change,) = deltas
        assert [topic.name for topic in change.topics_created.values()] == ["orders"]
        assert len(change.partitions_changed) == 2

    directory.run(scenario)


def test_concurrent_requests_share_a_sync_and_see_each_other(
    directory: ControllerDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    sync = Flush.sync
    monkeypatch.setattr(Flush, "sync", lambda flush: (syncs.append(flush.upto), sync(flush)))

    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        syncs.clear()
        responses = await asyncio.gather(
            *(controller.create_topics(f"t{n % 50}") for n in range(100))
        )
        codes = [response.topics[0].error_code for response in responses]
        assert codes == [ErrorCode.NONE] * 50 + [ErrorCode.TOPIC_ALREADY_EXISTS] * 50
        assert len(syncs) == 1

    directory.run(scenario)


def test_a_disk_that_fails_stops_the_node(
    directory: ControllerDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(flush: Flush) -> None:
        raise OSError(5, "Input/output error")

    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        monkeypatch.setattr(Flush, "sync", fail)
        with pytest.raises(KafkaError, match="NOT_CONTROLLER"):
            await controller.create_topics("lost")
        assert topic_names(controller.image) == set()
        with pytest.raises(NodeError, match=r"Input/output error.*Free or replace the disk"):
            await controller.node.run_until(asyncio.Event())
        monkeypatch.undo()

    directory.run(scenario)


def test_a_subscriber_that_fails_does_not_stop_the_others(directory: ControllerDirectory) -> None:
    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        seen: list[MetadataDelta] = []

        def fail(delta: MetadataDelta, image: MetadataImage) -> None:
            raise RuntimeError("a mistake")

        controller.subscribe(fail)
        controller.subscribe(lambda delta, image: seen.append(delta))
        response = await controller.create_topics("orders")
        assert response.topics[0].error_code == ErrorCode.NONE
        assert len(seen) == 1

    directory.run(scenario)


def test_old_snapshots_are_deleted_and_the_newest_contains_the_whole_image(
    directory: ControllerDirectory,
) -> None:
    directory.set(
        metadata_max_retention_bytes="30000",
        metadata_log_max_record_bytes_between_snapshots="5000",
        metadata_max_idle_interval_ms="0",
    )

    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        await controller.create_topics("kept", partitions=10)
        for turn in range(300):
            await controller.create_topics(f"t{turn}")
            await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{turn}")]))
            directory.now_ms += 1000
            controller.node.snapshots.maintain(directory.now_ms)

    before = directory.run(scenario)
    assert len(list(directory.folder.glob("*.checkpoint"))) <= 2
    after = directory.run(idle)
    assert after.topics == before.topics
    assert topic_names(after) == {"kept"}


def test_a_snapshot_is_taken_after_the_snapshot_interval(directory: ControllerDirectory) -> None:
    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        directory.now_ms += 3_600_000
        controller.node.snapshots.maintain(directory.now_ms)

    directory.run(scenario)
    assert len(list(directory.folder.glob("*.checkpoint"))) == 2


def test_a_log_truncated_anywhere_replays_to_an_earlier_image(
    directory: ControllerDirectory,
) -> None:
    images: list[set[str]] = [set()]

    async def scenario(controller: RunningController) -> None:
        await controller.register_broker()
        for number in range(4):
            await controller.create_topics(f"t{number}", partitions=2)
            images.append(topic_names(controller.image))

    directory.run(scenario, clean=False)
    log = directory.folder / f"{0:020}.log"
    whole = log.read_bytes()
    pristine = directory.path.with_name("pristine")
    shutil.copytree(directory.path, pristine)
    for cut in range(len(whole), 0, -13):
        shutil.rmtree(directory.path)
        shutil.copytree(pristine, directory.path)
        with log.open("r+b") as file:
            file.truncate(cut)
        image = directory.run(idle, clean=False)
        assert topic_names(image) in images
        assert image.features["metadata.version"] == 30


def test_a_directory_that_kafka_wrote_is_adopted(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_DIRECTORY, tmp_path / "kafka")
    directory = ControllerDirectory(tmp_path / "kafka", is_formatted=True)
    before = directory.run(idle)
    assert topic_names(before) == {"orders", "with.dots"}

    async def scenario(controller: RunningController) -> None:
        await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]))

    directory.run(scenario)
    assert topic_names(directory.run(idle)) == {"with.dots"}
    assert json.loads((directory.folder / "quorum-state").read_text())["leaderEpoch"] == 5


@pytest.mark.parametrize(
    "frame",
    [
        b"\x01\x7f\x00",  # a record of an unknown type
        encode_record(FeatureLevelRecord(name="metadata.version", feature_level=31), 0),
        encode_record(FeatureLevelRecord(name="of.the.future", feature_level=1), 0),
    ],
)
def test_records_of_a_newer_version_stop_the_node_with_advice(
    directory: ControllerDirectory, frame: bytes
) -> None:
    async def scenario(controller: RunningController) -> None:
        controller.quorum.append([frame], controller.quorum.epoch, directory.now_ms)
        with pytest.raises(NodeError, match="start"):
            await controller.node.run_until(asyncio.Event())

    directory.run(scenario)
    with pytest.raises(NodeError, match="start"):
        directory.run(idle)


def test_a_metadata_transaction_that_was_left_open_is_aborted(
    directory: ControllerDirectory,
) -> None:
    async def scenario(controller: RunningController) -> None:
        records = [BeginTransactionRecord(), TopicRecord(name="half", topic_id=b"h" * 16)]
        frames = [encode_record(record, 0) for record in records]
        controller.quorum.append(frames, controller.quorum.epoch, directory.now_ms)

    directory.run(scenario)

    async def after(controller: RunningController) -> None:
        await controller.register_broker()
        await controller.create_topics("whole")

    assert topic_names(directory.run(after)) == {"whole"}
