"""A controller's node on a real directory: durable before it is told, there after a restart."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from tests.metadata.conftest import KAFKA_DIRECTORY
from tests.node.home import Home, Life, names, nothing

from barnabas.log import Flush
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import encode_record
from barnabas.metadata.image import MetadataImage
from barnabas.node import NodeError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.metadata_records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "log")


def test_a_new_cluster_begins_as_kafka_begins_it(home: Home) -> None:
    image = home.run(nothing)
    assert image.features["metadata.version"] == 30
    assert image.config(4, "") == {"min.insync.replicas": "1"}
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
    async def first(life: Life) -> None:
        await life.join()
        await life.create("orders", "gone", partitions=3)
        await life.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")]))

    before = home.run(first, clean=clean)
    after = home.run(nothing)
    assert names(after) == {"orders"}
    assert after.topics == before.topics
    assert after.brokers == before.brokers


def test_an_answer_comes_after_it_is_durable_applied_and_published(home: Home) -> None:
    async def happens(life: Life) -> None:
        await life.join()
        seen: list[set[str]] = []
        life.subscribe(lambda delta, image: seen.append(names(image)))
        flushed_to = life.quorum.high_watermark
        await life.create("orders")
        assert life.quorum.high_watermark > flushed_to
        assert life.image.offset == life.quorum.high_watermark - 1
        assert seen == [{"orders"}]

    home.run(happens)


def test_a_follower_is_told_what_changed(home: Home) -> None:
    async def happens(life: Life) -> None:
        await life.join()
        told: list[MetadataDelta] = []
        life.subscribe(lambda delta, image: told.append(delta))
        await life.create("orders", partitions=2)
        (change,) = told
        assert [topic.name for topic in change.topics_created.values()] == ["orders"]
        assert len(change.partitions_changed) == 2

    home.run(happens)


def test_requests_at_once_share_a_sync_and_see_each_other(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    sync = Flush.sync
    monkeypatch.setattr(Flush, "sync", lambda flush: (syncs.append(flush.upto), sync(flush)))

    async def happens(life: Life) -> None:
        await life.join()
        syncs.clear()
        answers = await asyncio.gather(*(life.create(f"t{n % 50}") for n in range(100)))
        codes = [answer.topics[0].error_code for answer in answers]
        assert codes == [ErrorCode.NONE] * 50 + [ErrorCode.TOPIC_ALREADY_EXISTS] * 50
        assert len(syncs) == 1

    home.run(happens)


def test_a_disk_that_refuses_ends_the_node(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(flush: Flush) -> None:
        raise OSError(5, "Input/output error")

    async def happens(life: Life) -> None:
        await life.join()
        monkeypatch.setattr(Flush, "sync", refuse)
        lost = await life.create("lost")
        assert lost.topics[0].error_code != ErrorCode.NONE
        assert names(life.image) == set()
        with pytest.raises(NodeError, match=r"Input/output error.*Free or replace the disk"):
            await life.node.run_until(asyncio.Event())
        monkeypatch.undo()

    home.run(happens)


def test_one_follower_that_fails_does_not_stop_the_others(home: Home) -> None:
    async def happens(life: Life) -> None:
        await life.join()
        seen: list[MetadataDelta] = []

        def fail(delta: MetadataDelta, image: MetadataImage) -> None:
            raise RuntimeError("a mistake")

        life.subscribe(fail)
        life.subscribe(lambda delta, image: seen.append(delta))
        answer = await life.create("orders")
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert len(seen) == 1

    home.run(happens)


def test_old_snapshots_make_room_and_the_newest_keeps_the_image_whole(home: Home) -> None:
    home.set(
        metadata_max_retention_bytes="30000",
        metadata_log_max_record_bytes_between_snapshots="5000",
        metadata_max_idle_interval_ms="0",
    )

    async def happens(life: Life) -> None:
        await life.join()
        await life.create("kept", partitions=10)
        for turn in range(300):
            await life.create(f"t{turn}")
            await life.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{turn}")]))
            home.now_ms += 1000
            life.node.snapshots.maintain(home.now_ms)

    before = home.run(happens)
    assert len(list(home.folder.glob("*.checkpoint"))) <= 2
    after = home.run(nothing)
    assert after.topics == before.topics
    assert names(after) == {"kept"}


def test_a_snapshot_is_taken_when_its_time_has_come(home: Home) -> None:
    async def happens(life: Life) -> None:
        await life.join()
        home.now_ms += 3_600_000
        life.node.snapshots.maintain(home.now_ms)

    home.run(happens)
    assert len(list(home.folder.glob("*.checkpoint"))) == 2


def test_the_log_cut_anywhere_is_a_prefix_of_what_happened(home: Home) -> None:
    images: list[set[str]] = [set()]

    async def happens(life: Life) -> None:
        await life.join()
        for number in range(4):
            await life.create(f"t{number}", partitions=2)
            images.append(names(life.image))

    home.run(happens, clean=False)
    log = home.folder / f"{0:020}.log"
    whole = log.read_bytes()
    pristine = home.path.with_name("pristine")
    shutil.copytree(home.path, pristine)
    for cut in range(len(whole), 0, -13):
        shutil.rmtree(home.path)
        shutil.copytree(pristine, home.path)
        with log.open("r+b") as file:
            file.truncate(cut)
        image = home.run(nothing, clean=False)
        assert names(image) in images
        assert image.features["metadata.version"] == 30


def test_a_directory_that_kafka_wrote_is_taken_over(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_DIRECTORY, tmp_path / "kafka")
    home = Home(tmp_path / "kafka", is_formatted=True)
    before = home.run(nothing)
    assert names(before) == {"orders", "with.dots"}

    async def happens(life: Life) -> None:
        await life.handle(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]))

    home.run(happens)
    assert names(home.run(nothing)) == {"with.dots"}
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
    async def happens(life: Life) -> None:
        life.quorum.append([frame], life.quorum.epoch, home.now_ms)
        with pytest.raises(NodeError, match="start"):
            await life.node.run_until(asyncio.Event())

    home.run(happens)
    with pytest.raises(NodeError, match="start"):
        home.run(nothing)


def test_a_transaction_that_was_left_open_is_taken_back(home: Home) -> None:
    async def happens(life: Life) -> None:
        begun = [BeginTransactionRecord(), TopicRecord(name="half", topic_id=b"h" * 16)]
        frames = [encode_record(record, 0) for record in begun]
        life.quorum.append(frames, life.quorum.epoch, home.now_ms)

    home.run(happens)

    async def after(life: Life) -> None:
        await life.join()
        await life.create("whole")

    assert names(home.run(after)) == {"whole"}
