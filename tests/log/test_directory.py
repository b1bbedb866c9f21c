import json
from pathlib import Path

import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    LogTestDirectory,
    append,
    fill,
    read_all,
)

from barnabas.log import LogDirectory, LogDirFailure, NotFormatted
from barnabas.log.checkpoint_file import MalformedCheckpoint, encode_offsets, read_offsets
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode, KafkaError

RECOVERY_POINTS = "recovery-point-offset-checkpoint"


def test_a_directory_has_the_cluster_and_node_it_belongs_to(log_dir: LogTestDirectory) -> None:
    meta = log_dir.directory.meta
    assert (meta.cluster_id, meta.node_id) == ("a-cluster", 1)
    assert log_dir.directory.directory_id == bytes(range(16, 32))
    assert (log_dir.path / "meta.properties").read_text().splitlines() == [
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


def test_a_partition_folder_has_its_topic_id(log_dir: LogTestDirectory) -> None:
    log_dir.create()
    assert (log_dir.folder() / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    )
    assert log_dir.directory.topic_id_of("orders", 0) == TOPIC_ID


def test_a_folder_of_a_topic_that_was_deleted_is_not_opened(log_dir: LogTestDirectory) -> None:
    log_dir.create()
    log_dir.stop()
    log_dir.restart()
    with pytest.raises(KafkaError) as refused:
        log_dir.directory.open_log("orders", 0, bytes(16), SMALL)
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"version: 0\n"])
def test_lost_partition_metadata_is_written_again(
    log_dir: LogTestDirectory, content: bytes | None
) -> None:
    log_dir.create()
    log_dir.kill()
    path = log_dir.folder() / "partition.metadata"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    log_dir.restart()
    log_dir.open()
    assert log_dir.directory.topic_id_of("orders", 0) == TOPIC_ID


def test_partitions_are_listed_without_opening_them(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [("orders", 0), ("orders", 11), ("a-b.c_d", 3), ("__cluster_metadata", 0)]
    for topic, partition in names:
        log_dir.create(topic=topic, partition=partition)
    log = log_dir.create(topic="gone")
    log_dir.directory.delete_log(log)
    log_dir.stop()
    monkeypatch.setattr("barnabas.log.directory.log_directory.load_log", None)
    log_dir.restart()
    assert sorted(log_dir.directory.partitions()) == sorted(names)
    assert log_dir.directory.logs == {}


def test_a_clean_shutdown_file_is_used_only_once(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 3)
    log_dir.directory.close(broker_epoch=18)
    mark = log_dir.path / ".kafka_cleanshutdown"
    assert mark.read_text() == '{"version":0,"brokerEpoch":18}'
    log_dir.restart()
    assert log_dir.directory.was_clean_shutdown
    assert log_dir.directory.previous_broker_epoch == 18
    assert not mark.exists()
    log_dir.kill()
    log_dir.restart()
    assert not log_dir.directory.was_clean_shutdown


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"version":0}', "[]"])
def test_a_clean_shutdown_file_of_an_older_version_is_accepted(
    log_dir: LogTestDirectory, content: str
) -> None:
    log_dir.stop()
    (log_dir.path / ".kafka_cleanshutdown").write_text(content)
    log_dir.restart()
    assert log_dir.directory.was_clean_shutdown
    assert log_dir.directory.previous_broker_epoch == -1


def test_checkpoints_have_kafkas_layout(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 5)
    log.flusher.flush()
    log.advance_log_start_offset(2)
    log_dir.create(topic="other", partition=4)
    log_dir.directory.checkpoint({("orders", 0): 5, ("other", 4): 0})
    read = {path.name: path.read_text() for path in log_dir.path.glob("*-checkpoint")}
    assert read == {
        RECOVERY_POINTS: "0\n2\norders 0 5\nother 4 0\n",
        "log-start-offset-checkpoint": "0\n1\norders 0 2\n",
        "replication-offset-checkpoint": "0\n2\norders 0 5\nother 4 0\n",
    }


def test_checkpoints_keep_the_offsets_of_logs_that_are_not_open(log_dir: LogTestDirectory) -> None:
    for partition in range(3):
        log = log_dir.create(partition=partition)
        fill(log, 10)
        log.advance_log_start_offset(partition)
    high_watermarks = {("orders", partition): 10 for partition in range(3)}
    log_dir.directory.close(high_watermarks=high_watermarks)
    log_dir.restart()
    append(log_dir.open(partition=1), b"x")
    log_dir.directory.close(high_watermarks={("orders", 1): 11})
    log_dir.restart()
    assert log_dir.directory.checkpoints.high_watermarks == {**high_watermarks, ("orders", 1): 11}
    assert log_dir.directory.was_clean_shutdown
    assert log_dir.open(partition=2).log_start_offset == 2
    assert len(read_all(log_dir.open(partition=1))) == 10


def test_checkpoints_leave_deleted_logs_out(log_dir: LogTestDirectory) -> None:
    directory = log_dir.directory
    for number in range(3):
        log = directory.create_log("gone", number, bytes([number + 1] * 16))
        directory.checkpoint({("gone", number): 0})
        directory.delete_log(log)
    directory.checkpoint({})
    reported = [path.read_text() for path in log_dir.path.glob("*-checkpoint")]
    assert not any("gone" in each for each in reported)


def test_a_log_does_not_begin_while_a_checkpoint_has_an_older_one_of_its_name(
    log_dir: LogTestDirectory,
) -> None:
    """The checkpoint that leaves the old one out is begun, but not on disk, when it is made."""
    directory = log_dir.directory
    old = directory.create_log("again", 0, b"1" * 16)
    directory.checkpoints.recovery_points["again", 0] = 5
    directory.logs.pop(("again", 0))
    directory.checkpoint({("again", 0): 5})
    directory.delete_log(old)
    later = directory.begin_checkpoint({})
    directory.create_log("again", 0, b"2" * 16)
    reported = [path.read_text() for path in log_dir.path.glob("*-checkpoint")]
    assert not any("again 0 5" in each for each in reported)
    later.write()


def test_an_unreadable_checkpoint_is_ignored(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    fill(log_dir.create(), 10)
    log_dir.kill()
    (log_dir.path / RECOVERY_POINTS).write_text("0\n5\norders")
    log_dir.restart()
    assert RECOVERY_POINTS in caplog.text
    assert len(read_all(log_dir.open())) == 10


def test_checkpoints_are_replaced_as_a_whole(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log_dir.create(), 5)
    log_dir.directory.checkpoint()
    before = (log_dir.path / RECOVERY_POINTS).read_text()

    def refuse(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(LogDirFailure):
        log_dir.directory.checkpoint()
    assert (log_dir.path / RECOVERY_POINTS).read_text() == before


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
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create()
    fill(log, 5)
    log_dir.directory.delete_log(log)
    (renamed,) = log_dir.path.glob("orders-0.*-delete")
    assert len(renamed.name) == len("orders-0.") + 32 + len("-delete")
    assert read_all(log_dir.create()) == []
    log_dir.delete_due(NOW_MS)
    assert renamed.exists()
    log_dir.delete_due(NOW_MS + SMALL.delete_delay_ms)
    assert not renamed.exists()
    assert log_dir.folder().exists()


def test_a_full_directory_has_removed_all_leftovers_once_it_is_open(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogDirectory, "usable_bytes", 1000)
    fill(log_dir.create(), 100)
    log_dir.create(topic="other")
    log_dir.directory.delete_log(log_dir.create(topic="deleted"))
    log_dir.stop()
    left = [
        "00000000000000000000.log.deleted",
        "00000000000000000000.snapshot.deleted",
        "00000000000000000090.log.cleaned",
        "00000000000000000095.log.swap",  # of the same cleaning, which was not finished
    ]
    for name in left:
        (log_dir.folder() / name).write_bytes(b"x" * 1000)
    (log_dir.folder("other") / "00000000000000000000.log.swap").write_bytes(b"")
    (log_dir.path / "lost+found").mkdir(mode=0)
    (log_dir.path / "mine-delete").mkdir()
    log_dir.restart()
    assert not any((log_dir.folder() / name).exists() for name in left)
    assert sorted(path.name for path in log_dir.path.glob("*-delete")) == ["mine-delete"]
    assert (log_dir.folder("other") / "00000000000000000000.log.swap").exists()
    assert len(read_all(log_dir.open())) == 100


def test_files_are_deleted_without_a_delay_while_the_disk_is_full(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    delay_ms = SMALL.delete_delay_ms
    log_dir.directory.delete_log(log_dir.create(topic="before"))
    assert log_dir.delete_due(NOW_MS) == 0
    monkeypatch.setattr(LogDirectory, "usable_bytes", 1000)
    log_dir.directory.on_full()
    log_dir.directory.delete_log(log_dir.create(topic="meanwhile"))
    assert log_dir.delete_due(NOW_MS) == 2
    log_dir.directory.delete_log(log_dir.create(topic="while still full"))
    monkeypatch.undo()
    assert log_dir.delete_due(NOW_MS) == 1
    log_dir.directory.delete_log(log_dir.create(topic="after"))
    assert log_dir.delete_due(NOW_MS) == 0
    assert log_dir.delete_due(NOW_MS + delay_ms) == 1


def test_a_topic_with_the_longest_name_can_be_deleted(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(topic="t" * 249)
    log_dir.directory.delete_log(log)
    assert len(list(log_dir.path.glob("*-delete"))) == 1


def test_pending_deletes_of_an_earlier_process_are_removed(log_dir: LogTestDirectory) -> None:
    log_dir.directory.delete_log(log_dir.create())
    log_dir.stop()
    log_dir.restart()
    log_dir.delete_due(NOW_MS)
    assert list(log_dir.path.glob("*-delete")) == []


def test_a_log_is_opened_once(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    assert log_dir.open() is log


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_an_empty_log_is_a_folder_with_its_topic_id(log_dir: LogTestDirectory, stop: str) -> None:
    log_dir.create()
    getattr(log_dir, stop)()
    assert [path.name for path in log_dir.folder().glob("*.*")] == ["partition.metadata"]
    log_dir.restart()
    log = log_dir.open()
    assert log.flusher.is_due(NOW_MS) is False
    log.flusher.flush()
    assert append(log, b"first") == 0
    assert read_all(log) == [(0, b"first")]


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_an_emptied_log_continues_at_its_end_offset(log_dir: LogTestDirectory, stop: str) -> None:
    log = log_dir.create()
    fill(log, 5)
    log.advance_log_start_offset(5)
    log.maintenance.delete_old_segments(NOW_MS + 10 * SMALL.retention_ms, 5)
    getattr(log_dir, stop)()
    log_dir.restart()
    log = log_dir.open()
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


def test_total_and_usable_space_are_reported(log_dir: LogTestDirectory) -> None:
    assert 0 < log_dir.directory.usable_bytes <= log_dir.directory.total_bytes


def test_an_idle_log_adds_nothing_to_a_clean_shutdown(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 5)
    log_dir.stop()
    before = {path: path.stat().st_mtime_ns for path in log_dir.folder().iterdir()}
    log_dir.restart()
    log_dir.open()
    log_dir.stop()
    assert {path: path.stat().st_mtime_ns for path in log_dir.folder().iterdir()} == before


def test_the_clean_shutdown_file_is_one_line_of_json(log_dir: LogTestDirectory) -> None:
    log_dir.stop()
    content = (log_dir.path / ".kafka_cleanshutdown").read_text()
    assert json.loads(content) == {"version": 0, "brokerEpoch": -1}


def test_a_damaged_meta_properties_is_rejected_by_name(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_bytes(b"\xff\xfe\x80")
    with pytest.raises(NotFormatted, match=r"meta\.properties is not text"):
        LogDirectory.open(tmp_path)
