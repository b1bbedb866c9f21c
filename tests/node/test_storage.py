"""A node opens its log directories, recovers them, and handles those that it cannot use."""

import asyncio
import errno
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.log.log_test_directory import fill

from barnabas.config import BrokerSettings
from barnabas.log import LogConfig, LogDirectory, LogDirFailure
from barnabas.node.environment import DiskThreads
from barnabas.node.errors import NodeError
from barnabas.node.format import single_node_properties
from barnabas.node.storage import NodeStorage


def settings_of(*directories: Path) -> BrokerSettings:
    properties = single_node_properties("127.0.0.1", 9092, directories[0])
    properties["log.dirs"] = ",".join(map(str, directories))
    return BrokerSettings.from_properties(properties)


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one", tmp_path / "two"]
    for number, path in enumerate(paths, start=1):
        LogDirectory.format(path, "castle", 1, bytes([number]) * 16)
    return paths


def test_a_node_opens_all_directories_and_the_first_has_the_metadata_log(
    directories: list[Path],
) -> None:
    storage = NodeStorage(settings_of(*directories))
    assert [directory.path for directory in storage.directories] == [
        str(path) for path in directories
    ]
    assert storage.metadata is storage.directories[0]
    assert storage.failed_paths == []
    storage.abandon()


def test_the_previous_broker_epoch_is_valid_if_all_directories_were_closed_cleanly_in_it(
    directories: list[Path],
) -> None:
    first = NodeStorage(settings_of(*directories))
    assert first.previous_broker_epoch == -1
    for directory in first.directories:
        directory.close(clean=True, broker_epoch=7)
    second = NodeStorage(settings_of(*directories))
    assert second.previous_broker_epoch == 7
    second.directories[0].close(clean=True, broker_epoch=8)
    second.directories[1].close(clean=False)
    third = NodeStorage(settings_of(*directories))
    assert third.previous_broker_epoch == -1
    third.abandon()


def test_a_directory_in_use_stops_the_node_and_the_others_are_released(
    directories: list[Path],
) -> None:
    other = LogDirectory.open(directories[1])
    with pytest.raises(NodeError, match=r"Another broker uses .*two: stop it, or choose another"):
        NodeStorage(settings_of(*directories))
    other.close(clean=False)
    NodeStorage(settings_of(*directories)).abandon()


def test_an_unreadable_directory_is_offline_alone(directories: list[Path]) -> None:
    (directories[1] / ".lock").mkdir()
    storage = NodeStorage(settings_of(*directories))
    assert storage.failed_paths == [str(directories[1])]
    assert [directory.path for directory in storage.directories] == [str(directories[0])]
    storage.abandon()


def test_a_node_does_not_start_without_its_metadata_log(directories: list[Path]) -> None:
    (directories[0] / ".lock").mkdir()
    with pytest.raises(NodeError, match=r"The metadata log in .*one cannot be read"):
        NodeStorage(settings_of(*directories))


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "directory_id", "error"),
    [
        ("castle", 2, b"2" * 16, "belongs to node 2, but node.id is 1"),
        ("moat", 1, b"2" * 16, "belongs to cluster moat"),
        ("castle", 1, b"\x01" * 16, "are copies with one directory.id"),
    ],
)
def test_a_directory_of_another_node_or_cluster_is_rejected(
    directories: list[Path], cluster_id: str, node_id: int, directory_id: bytes, error: str
) -> None:
    LogDirectory.format(directories[1], cluster_id, node_id, directory_id)
    with pytest.raises(NodeError, match=error):
        NodeStorage(settings_of(*directories))


def crash_with_logs(*directories: Path) -> None:
    for path in directories:
        directory = LogDirectory.open(path)
        for partition in range(3):
            fill(directory.create_log("orders", partition, bytes(16)), 5)
        directory.close(clean=False)


def recover(storage: NodeStorage) -> None:
    async def run() -> None:
        threads = DiskThreads(asyncio.get_running_loop())
        await storage.recover(threads, lambda topic: LogConfig(), threads_per_directory=2)
        await threads.close()

    asyncio.run(run())


def test_the_logs_of_every_directory_are_recovered(
    directories: list[Path], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "barnabas.node")
    monkeypatch.setattr("barnabas.node.storage.PROGRESS_INTERVAL_S", 0)
    crash_with_logs(*directories)
    storage = NodeStorage(settings_of(*directories))
    recover(storage)
    for directory in storage.directories:
        assert directory.unrecovered_partitions() == []
        assert directory.logs == {}
        assert f"{directory.path} was not shut down cleanly; recovering 3 logs" in caplog.text
        assert f"{directory.path}: recovered 3 of 3 logs" in caplog.text
    storage.abandon()


def test_a_directory_that_fails_during_recovery_is_offline_alone(directories: list[Path]) -> None:
    crash_with_logs(*directories)
    (directories[1] / "broken-0").touch()
    storage = NodeStorage(settings_of(*directories))
    recover(storage)
    assert [directory.failed is None for directory in storage.directories] == [True, False]
    assert storage.metadata.unrecovered_partitions() == []
    storage.abandon()


def test_a_failure_of_the_metadata_directory_during_recovery_stops_the_start(
    directories: list[Path],
) -> None:
    crash_with_logs(*directories)
    (directories[0] / "broken-0").touch()
    storage = NodeStorage(settings_of(*directories))
    with pytest.raises(LogDirFailure, match="one"):
        recover(storage)
    storage.abandon()


class FailureRecorder:
    """Records which directories fail, as partitions do."""

    def __init__(self) -> None:
        self.failed: list[LogDirectory] = []

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        self.failed.append(directory)


def sync(storage: NodeStorage) -> list[LogDirectory]:
    """Syncs the recovered logs; returns the directories that fail."""
    partitions: Any = FailureRecorder()

    async def run() -> None:
        threads = DiskThreads(asyncio.get_running_loop())
        storage.sync_recovered(threads, partitions)
        await threads.close()

    asyncio.run(run())
    return list(partitions.failed)


def test_recovered_logs_are_brought_to_disk_in_the_background(
    directories: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.node.storage._SYNCED_AT_ONCE", 2)
    crash_with_logs(*directories)
    storage = NodeStorage(settings_of(*directories))
    recover(storage)
    expected = {("orders", number): 5 for number in range(3)}
    for directory in storage.directories:
        assert directory.checkpoints.recovery_points == dict.fromkeys(expected, 0)
    assert sync(storage) == []
    for directory in storage.directories:
        assert directory.checkpoints.recovery_points == expected
    storage.abandon()


def test_a_directory_that_cannot_be_synced_after_recovery_has_failed(
    directories: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_with_logs(*directories)
    storage = NodeStorage(settings_of(*directories))
    recover(storage)

    def fail(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("barnabas.log.directory.directory_recovery.sync_path", fail)
    assert sync(storage) == storage.directories
    assert all(directory.failed is not None for directory in storage.directories)
    storage.abandon()
