import json
from pathlib import Path

import pytest
from tests.log.workshop import NOW_MS, SMALL, TOPIC_ID, Workshop, append, fill, read_all

from barnabas.log import LogDirectory, LogDirFailure, NotFormatted
from barnabas.log.checkpoint_file import MalformedCheckpoint, encode_offsets, read_offsets
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode, KafkaError

RECOVERY_POINTS = "recovery-point-offset-checkpoint"


def test_a_directory_has_the_cluster_and_node_it_belongs_to(workshop: Workshop) -> None:
    meta = workshop.directory.meta
    assert (meta.cluster_id, meta.node_id) == ("a-cluster", 1)
    assert workshop.directory.directory_id == bytes(range(16, 32))
    assert (workshop.path / "meta.properties").read_text().splitlines() == [
        "version=1",
        "cluster.id=a-cluster",
        "node.id=1",
        "directory.id=EBESExQVFhcYGRobHB0eHw",
    ]


def test_the_properties_that_kafka_writes_are_read(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Nov 16 00:22:44 UTC 2026\nnode.id=1\ndirectory.id=4zkuQXfMT9OptTDfTCtkzg\n"
        "version=1\ncluster.id=barnabas-peer-cluster0\n"
    )
    directory = LogDirectory.open(tmp_path)
    assert uuid.to_text(directory.directory_id) == "4zkuQXfMT9OptTDfTCtkzg"
    directory.close()


@pytest.mark.parametrize("content", [None, "", "version=0\ncluster.id=c\nnode.id=1\n", "version=1"])
def test_a_directory_that_was_not_formatted_does_not_open(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(NotFormatted, match=r"meta\.properties"):
        LogDirectory.open(tmp_path)


def test_a_partition_folder_has_its_topic_id(workshop: Workshop) -> None:
    workshop.create()
    assert (workshop.folder() / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    assert workshop.directory.topic_id_of("orders", 0) == TOPIC_ID


def test_a_folder_of_a_topic_that_was_deleted_is_not_opened(workshop: Workshop) -> None:
    workshop.create()
    workshop.stop()
    workshop.restart()
    with pytest.raises(KafkaError) as refused:
        workshop.directory.open_log("orders", 0, bytes(16), SMALL)
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"version: 0\n"])
def test_lost_partition_metadata_is_written_again(
    workshop: Workshop, content: bytes | None
) -> None:
    workshop.create()
    workshop.kill()
    path = workshop.folder() / "partition.metadata"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    workshop.restart()
    workshop.open()
    assert workshop.directory.topic_id_of("orders", 0) == TOPIC_ID


def test_partitions_are_listed_without_opening_them(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [("orders", 0), ("orders", 11), ("a-b.c_d", 3), ("__cluster_metadata", 0)]
    for topic, partition in names:
        workshop.create(topic=topic, partition=partition)
    log = workshop.create(topic="gone")
    workshop.directory.delete_log(log)
    workshop.stop()
    monkeypatch.setattr("barnabas.log.directory.log_directory.load_log", None)
    workshop.restart()
    assert sorted(workshop.directory.partitions()) == sorted(names)
    assert workshop.directory.logs == {}


def test_a_clean_shutdown_file_is_used_only_once(workshop: Workshop) -> None:
    fill(workshop.create(), 3)
    workshop.directory.close(broker_epoch=18)
    mark = workshop.path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":18}'
    workshop.restart()
    assert workshop.directory.was_clean_shutdown
    assert workshop.directory.previous_broker_epoch == 18
    assert not mark.exists()
    workshop.kill()
    workshop.restart()
    assert not workshop.directory.was_clean_shutdown


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"version":0}', "[]"])
def test_a_clean_shutdown_file_of_an_older_version_is_accepted(
    workshop: Workshop, content: str
) -> None:
    workshop.stop()
    (workshop.path / ".kafka_cleanshutdown").write_text(content)
    workshop.restart()
    assert workshop.directory.was_clean_shutdown
    assert workshop.directory.previous_broker_epoch == -1


def test_checkpoints_have_kafkas_layout(workshop: Workshop) -> None:
    log = workshop.create()
    fill(log, 5)
    log.flusher.flush()
    log.advance_log_start_offset(2)
    workshop.create(topic="other", partition=4)
    workshop.directory.checkpoint({("orders", 0): 5, ("other", 4): 0})
    read = {path.name: path.read_text() for path in workshop.path.glob("*-checkpoint")}
    assert read == {
        RECOVERY_POINTS: "0\n2\norders 0 5\nother 4 0\n",
        "log-start-offset-checkpoint": "0\n1\norders 0 2\n",
        "replication-offset-checkpoint": "0\n2\norders 0 5\nother 4 0\n",
    }


def test_checkpoints_keep_the_offsets_of_logs_that_are_not_open(workshop: Workshop) -> None:
    for partition in range(3):
        log = workshop.create(partition=partition)
        fill(log, 10)
        log.advance_log_start_offset(partition)
    high_watermarks = {("orders", partition): 10 for partition in range(3)}
    workshop.directory.close(high_watermarks=high_watermarks)
    workshop.restart()
    append(workshop.open(partition=1), b"x")
    workshop.directory.close(high_watermarks={("orders", 1): 11})
    workshop.restart()
    assert workshop.directory.checkpoints.high_watermarks == {**high_watermarks, ("orders", 1): 11}
    assert workshop.directory.was_clean_shutdown
    assert workshop.open(partition=2).log_start_offset == 2
    assert len(read_all(workshop.open(partition=1))) == 10


def test_checkpoints_leave_deleted_logs_out(workshop: Workshop) -> None:
    directory = workshop.directory
    for number in range(3):
        log = directory.create_log("gone", number, bytes([number + 1] * 16))
        directory.checkpoint({("gone", number): 0})
        directory.delete_log(log)
    directory.checkpoint({})
    told = [path.read_text() for path in workshop.path.glob("*-checkpoint")]
    assert not any("gone" in each for each in told)


def test_a_log_does_not_begin_while_a_checkpoint_has_an_older_one_of_its_name(
    workshop: Workshop,
) -> None:
    """The checkpoint that leaves the old one out is begun, but not on disk, when it is made."""
    directory = workshop.directory
    old = directory.create_log("again", 0, b"1" * 16)
    directory.checkpoints.recovery_points["again", 0] = 5
    directory.logs.pop(("again", 0))
    directory.checkpoint({("again", 0): 5})
    directory.delete_log(old)
    later = directory.begin_checkpoint({})
    directory.create_log("again", 0, b"2" * 16)
    told = [path.read_text() for path in workshop.path.glob("*-checkpoint")]
    assert not any("again 0 5" in each for each in told)
    later.write()


def test_an_unreadable_checkpoint_is_ignored(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    fill(workshop.create(), 10)
    workshop.kill()
    (workshop.path / RECOVERY_POINTS).write_text("0\n5\norders")
    workshop.restart()
    assert RECOVERY_POINTS in caplog.text
    assert len(read_all(workshop.open())) == 10


def test_checkpoints_are_replaced_as_a_whole(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workshop.create(), 5)
    workshop.directory.checkpoint()
    before = (workshop.path / RECOVERY_POINTS).read_text()

    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(LogDirFailure):
        workshop.directory.checkpoint()
    assert (workshop.path / RECOVERY_POINTS).read_text() == before


@pytest.mark.parametrize("content", ["0\n1\na 1\n", "0\n1\na b 1\n", "2\n0\n", "0\nx\n", "0\n1\n"])
def test_malformed_checkpoints_are_detected(tmp_path: Path, content: str) -> None:
    (tmp_path / "c").write_text(content)
    with pytest.raises(MalformedCheckpoint):
        read_offsets(str(tmp_path / "c"))


def test_offsets_are_read_back(tmp_path: Path) -> None:
    offsets = {("a", 0): 1, ("b-c", 12): 1 << 40}
    (tmp_path / "c").write_bytes(encode_offsets(offsets))
    assert read_offsets(str(tmp_path / "c")) == offsets
    (tmp_path / "c").write_bytes(b"")
    assert read_offsets(str(tmp_path / "c")) == read_offsets(str(tmp_path / "none")) == {}


def test_a_deleted_log_is_renamed_at_once_and_removed_later(
    workshop: Workshop,
) -> None:
    log = workshop.create()
    fill(log, 5)
    workshop.directory.delete_log(log)
    (renamed,) = workshop.path.glob("orders-0.*-delete")
    assert len(renamed.name) == len("orders-0.") + 32 + len("-delete")
    assert read_all(workshop.create()) == []
    workshop.directory.delete_due(NOW_MS)
    assert renamed.exists()
    workshop.directory.delete_due(NOW_MS + SMALL.delete_delay_ms)
    assert not renamed.exists()
    assert workshop.folder().exists()


def test_a_topic_with_the_longest_name_can_be_deleted(workshop: Workshop) -> None:
    log = workshop.create(topic="t" * 249)
    workshop.directory.delete_log(log)
    assert len(list(workshop.path.glob("*-delete"))) == 1


def test_pending_deletes_of_an_earlier_process_are_removed(workshop: Workshop) -> None:
    workshop.directory.delete_log(workshop.create())
    workshop.stop()
    workshop.restart()
    workshop.directory.delete_due(NOW_MS)
    assert list(workshop.path.glob("*-delete")) == []


def test_a_log_is_opened_once(workshop: Workshop) -> None:
    log = workshop.create()
    assert workshop.open() is log


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_an_empty_log_is_a_folder_with_its_topic_id(workshop: Workshop, stop: str) -> None:
    workshop.create()
    getattr(workshop, stop)()
    assert [path.name for path in workshop.folder().glob("*.*")] == ["partition.metadata"]
    workshop.restart()
    log = workshop.open()
    assert log.flusher.is_due(NOW_MS) is False
    log.flusher.flush()
    assert append(log, b"first") == 0
    assert read_all(log) == [(0, b"first")]


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_an_emptied_log_continues_at_its_end_offset(workshop: Workshop, stop: str) -> None:
    log = workshop.create()
    fill(log, 5)
    log.advance_log_start_offset(5)
    log.maintenance.delete_old_segments(NOW_MS + 10 * SMALL.retention_ms, 5)
    getattr(workshop, stop)()
    workshop.restart()
    log = workshop.open()
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


def test_total_and_usable_space_are_reported(workshop: Workshop) -> None:
    assert 0 < workshop.directory.usable_bytes <= workshop.directory.total_bytes


def test_an_idle_log_adds_nothing_to_a_clean_shutdown(workshop: Workshop) -> None:
    fill(workshop.create(), 5)
    workshop.stop()
    before = {path: path.stat().st_mtime_ns for path in workshop.folder().iterdir()}
    workshop.restart()
    workshop.open()
    workshop.stop()
    assert {path: path.stat().st_mtime_ns for path in workshop.folder().iterdir()} == before


def test_the_clean_shutdown_file_is_one_line_of_json(workshop: Workshop) -> None:
    workshop.stop()
    content = (workshop.path / ".kafka_cleanshutdown").read_text()
    assert json.loads(content) == {"version": 0, "brokerEpoch": -1}


def test_a_damaged_meta_properties_is_rejected_by_name(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(NotFormatted, match=r"meta\.properties is not text"):
        LogDirectory.open(tmp_path)
