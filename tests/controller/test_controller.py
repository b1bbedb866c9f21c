"""The controller on a real directory: durable before it is told, there again after a restart."""

import asyncio
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import CLUSTER_ID, DIRECTORY_ID, Home, settings
from tests.metadata.conftest import KAFKA_DIRECTORY

from barnabas.controller import Controller
from barnabas.controller import controller as module
from barnabas.log import Flush, LogDirectory
from barnabas.metadata.delta import Delta
from barnabas.metadata.features import SUPPORTED
from barnabas.metadata.frames import encode_record
from barnabas.metadata.image import Image
from barnabas.raft import QuorumConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.metadata_records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records


async def join(controller: Controller) -> None:
    """Register the broker and let it in."""
    features = [
        Feature(name=name, min_supported_version=each.min, max_supported_version=each.max)
        for name, each in SUPPORTED.items()
    ]
    registered = await controller.handle(
        BrokerRegistrationRequest(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            incarnation_id=b"i" * 16,
            features=features,
            log_dirs=[DIRECTORY_ID],
        )
    )
    await controller.handle(
        BrokerHeartbeatRequest(
            broker_id=1,
            broker_epoch=registered.broker_epoch,
            current_metadata_offset=controller.image.offset,
        )
    )


async def create(controller: Controller, *names: str, partitions: int = 1) -> Any:
    return await controller.handle(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
                for name in names
            ]
        )
    )


def names(image: Image) -> set[str]:
    return {topic.name for topic in image.topics}


async def nothing(controller: Controller) -> None:
    """A life in which nobody asks for anything."""


def test_a_new_cluster_begins_as_kafka_begins_it(home: Home) -> None:
    controller = home.run(nothing)
    assert controller.image.features["metadata.version"] == 30
    assert controller.image.config(4, "") == {"min.insync.replicas": "1"}
    content = (home.folder / f"{0:020}.log").read_bytes()
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
    state = json.loads((home.folder / "quorum-state").read_text())
    assert state == {
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
        "data_version": 1,
    }


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_answered_is_there_after_a_restart(home: Home, clean: bool) -> None:
    async def first(controller: Controller) -> None:
        await join(controller)
        await create(controller, "orders", "gone", partitions=3)
        await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))

    before = home.run(first, clean=clean).image
    after = home.run(nothing).image
    assert names(after) == {"orders"}
    assert after == before
    assert after.offset == before.offset


def test_an_answer_comes_after_it_is_durable_applied_and_published(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        seen: list[set[str]] = []
        controller.subscribe(lambda delta, image: seen.append(names(image)))
        flushed_to = controller.quorum.high_watermark
        await create(controller, "orders")
        assert controller.quorum.high_watermark > flushed_to
        assert controller.image.offset == controller.quorum.high_watermark - 1
        assert seen == [{"orders"}]

    home.run(life)


def test_a_listener_is_told_what_changed(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        told: list[Delta] = []
        controller.subscribe(lambda delta, image: told.append(delta))
        await create(controller, "orders", partitions=2)
        (change,) = told
        assert [topic.name for topic in change.topics_created.values()] == ["orders"]
        assert len(change.partitions_changed) == 2

    home.run(life)


def test_requests_at_once_share_a_sync_and_see_each_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    sync = Flush.sync
    monkeypatch.setattr(Flush, "sync", lambda flush: (syncs.append(flush.upto), sync(flush)))

    async def life(controller: Controller) -> None:
        await join(controller)
        syncs.clear()
        answers = await asyncio.gather(*(create(controller, f"t{n % 50}") for n in range(100)))
        codes = [answer.topics[0].error_code for answer in answers]
        assert codes == [ErrorCode.NONE] * 50 + [ErrorCode.TOPIC_ALREADY_EXISTS] * 50
        assert len(syncs) == 1

    home.run(life)


def test_a_decision_without_records_waits_for_those_it_rests_on(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        first = asyncio.ensure_future(create(controller, "orders"))
        second = asyncio.ensure_future(create(controller, "orders"))
        await second
        assert names(controller.image) == {"orders"}
        await first

    home.run(life)


def test_a_disk_that_refuses_ends_the_controller(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(flush: Flush) -> None:
        raise OSError(5, "Input/output error")

    async def life(controller: Controller) -> None:
        await join(controller)
        monkeypatch.setattr(Flush, "sync", refuse)
        lost = await create(controller, "lost")
        assert lost.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "Input/output error" in lost.topics[0].error_message
        monkeypatch.undo()
        refused = await create(controller, "after")
        assert refused.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert names(controller.image) == set()
        assert controller.failure is not None

    home.run(life, clean=False)


def test_a_disk_that_hangs_is_told_and_the_queue_for_it_is_bounded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed = threading.Event()
    sync = Flush.sync
    monkeypatch.setattr(module, "LEAST_WAIT_MS", 300)
    monkeypatch.setattr(module, "MAX_WAITING", 2)

    def hang(flush: Flush) -> None:
        resumed.wait(10)
        sync(flush)

    async def life(controller: Controller) -> None:
        await join(controller)
        monkeypatch.setattr(Flush, "sync", hang)
        answers = await asyncio.gather(*(create(controller, f"t{n}") for n in range(4)))
        codes = [answer.topics[0].error_code for answer in answers]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 4
        assert names(controller.image) == set()
        resumed.set()

    # What was appended may still be committed, and here it is; what was turned away is not.
    assert names(home.run(life).image) == {"t0", "t1"}


def test_one_listener_that_fails_does_not_stop_the_others(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        seen: list[Delta] = []

        def fail(delta: Delta, image: Image) -> None:
            raise RuntimeError("a mistake")

        controller.subscribe(fail)
        controller.subscribe(lambda delta, image: seen.append(delta))
        answer = await create(controller, "orders")
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert len(seen) == 1

    home.run(life)


def test_who_no_longer_waits_does_not_stop_the_others(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        impatient = asyncio.ensure_future(create(controller, "one"))
        patient = asyncio.ensure_future(create(controller, "two"))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).topics[0].error_code == ErrorCode.NONE
        assert names(controller.image) == {"one", "two"}

    home.run(life)


def test_a_silent_log_gets_a_sign_of_life(home: Home) -> None:
    async def life(controller: Controller) -> None:
        offset = controller.image.offset
        controller.maintain(home.now_ms)
        assert controller.quorum.end_offset == offset + 1
        home.now_ms += 500
        controller.maintain(home.now_ms)
        controller.maintain(home.now_ms)
        assert controller.quorum.end_offset == offset + 2

    home.run(life)


def test_snapshots_keep_the_log_bounded_and_the_image_whole(home: Home) -> None:
    home.quorum_config = QuorumConfig(segment_bytes=10_000, retention_bytes=30_000)
    home.settings = settings(
        metadata_log_max_record_bytes_between_snapshots="5000", metadata_max_idle_interval_ms="0"
    )

    async def life(controller: Controller) -> None:
        await join(controller)
        await create(controller, "kept", partitions=10)
        for turn in range(300):
            await create(controller, f"t{turn}")
            await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{turn}")]))
            home.now_ms += 1000
            controller.maintain(home.now_ms)

    before = home.run(life).image
    kept = sum(path.stat().st_size for path in home.folder.glob("*.log"))
    written = sum(path.stat().st_size for path in home.folder.glob("*.checkpoint"))
    assert kept + written < 60_000
    after = home.run(nothing).image
    assert after == before
    assert names(after) == {"kept"}


def test_a_snapshot_is_taken_when_its_time_has_come(home: Home) -> None:
    async def life(controller: Controller) -> None:
        await join(controller)
        home.now_ms += 3_600_000
        controller.maintain(home.now_ms)

    home.run(life)
    assert len(list(home.folder.glob("*.checkpoint"))) == 2


def test_the_log_cut_anywhere_is_a_prefix_of_what_happened(home: Home) -> None:
    images: list[set[str]] = [set()]

    async def life(controller: Controller) -> None:
        await join(controller)
        for number in range(4):
            await create(controller, f"t{number}", partitions=2)
            images.append(names(controller.image))

    home.run(life, clean=False)
    log = home.folder / f"{0:020}.log"
    whole = log.read_bytes()
    pristine = home.path.with_name("pristine")
    shutil.copytree(home.path, pristine)
    for cut in range(len(whole), 0, -13):
        shutil.rmtree(home.path)
        shutil.copytree(pristine, home.path)
        with log.open("r+b") as file:
            file.truncate(cut)
        image = home.run(nothing, clean=False).image
        assert names(image) in images
        assert image.features["metadata.version"] == 30


def test_a_directory_that_kafka_wrote_is_taken_over(tmp_path: Path) -> None:
    home = Home(tmp_path / "unused")
    home.path = tmp_path / "kafka"
    shutil.copytree(KAFKA_DIRECTORY, home.path)
    directory = LogDirectory.open(home.path)
    home.node = type(home.node)(1, directory.directory_id, home.node.endpoints)
    directory.close(clean=False)
    before = home.run(nothing).image
    assert names(before) == {"orders", "with.dots"}
    assert before.epoch == 2

    async def life(controller: Controller) -> None:
        await controller.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]))

    home.run(life)
    assert names(home.run(nothing).image) == {"with.dots"}
    assert json.loads((home.folder / "quorum-state").read_text())["leaderEpoch"] == 5


@pytest.mark.parametrize(
    "frame",
    [
        b"\x01\x7f\x00",  # a record of a type that is not known yet
        encode_record(FeatureLevelRecord(name="metadata.version", feature_level=31), 0),
        encode_record(FeatureLevelRecord(name="of.the.future", feature_level=1), 0),
    ],
)
def test_what_a_newer_version_wrote_is_refused_with_the_way_out(home: Home, frame: bytes) -> None:
    async def life(controller: Controller) -> None:
        controller.quorum.append([frame], home.now_ms)
        controller.quorum.flush()

    home.run(life)
    with pytest.raises(KafkaError, match="start") as refused:
        home.run(nothing)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert home.directory is not None
    home.directory.close(clean=False)


def test_a_transaction_that_was_left_open_is_taken_back(home: Home) -> None:
    async def life(controller: Controller) -> None:
        begun = [BeginTransactionRecord(), TopicRecord(name="half", topic_id=b"h" * 16)]
        controller.quorum.append([encode_record(record, 0) for record in begun], home.now_ms)
        controller.quorum.flush()

    home.run(life)

    async def after(controller: Controller) -> None:
        await join(controller)
        await create(controller, "whole")

    assert names(home.run(after).image) == {"whole"}
