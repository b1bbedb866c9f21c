"""Partitions follow the metadata: they come, go, change hands, and cost nothing when untouched."""

import errno
import os
from collections.abc import Callable

import pytest
from tests.os_faults import fault_in_this_thread
from tests.replication.world import NODE_ID, World

from barnabas.log import CorruptLog, Log, LogDirectory
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import metadata_records as records

DAY_MS = 24 * 60 * 60 * 1000


def rejects_with(code: ErrorCode) -> "pytest.RaisesContext[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


def test_a_new_topic_has_its_folders_at_once(world: World) -> None:
    world.create_topic("orders", 3)
    assert world.folders() == ["orders-0", "orders-1", "orders-2"]
    assert (world.paths[0] / "orders-0" / "partition.metadata").exists()


def test_a_large_topic_gets_its_folders_in_slices_and_serves_meanwhile(world: World) -> None:
    world.create_topic("orders", 200)
    assert 0 < len(world.folders()) < 200
    assert world.append("orders", b"a", index=199) == 0
    world.run_maintenance()
    assert len(world.folders()) == 200


def test_partitions_of_other_brokers_have_no_folder_here(world: World) -> None:
    world.create_topic("orders", replicas=(2,), leader=2)
    assert world.folders() == []
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        world.partition("orders")


def test_a_partition_that_is_not_in_the_metadata_is_unknown(world: World) -> None:
    world.create_topic("orders")
    with rejects_with(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        world.partitions.get_by_name("order", 0)
    with rejects_with(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        world.partitions.get_by_name("orders", 1)
    with rejects_with(ErrorCode.UNKNOWN_TOPIC_ID):
        world.partitions.get(b"\1" * 16, 0)


def test_a_start_opens_no_partition(world: World) -> None:
    world.create_topic("orders", 50)
    world.append("orders", b"a", index=7)
    world.restart()
    assert world.partitions.opened() == []
    assert world.append("orders", b"b", index=7) == 1
    assert len(world.partitions.opened()) == 1


def test_partitions_added_to_a_topic_get_their_folders(world: World) -> None:
    topic_id = world.create_topic("orders")
    world.metadata(
        records.PartitionRecord(
            partition_id=1,
            topic_id=topic_id,
            replicas=[NODE_ID],
            isr=[NODE_ID],
            leader=NODE_ID,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(16)],
        )
    )
    assert world.folders() == ["orders-0", "orders-1"]


def test_a_deleted_topic_is_unknown_at_once_and_its_files_are_removed_after_the_delay(
    world: World,
) -> None:
    world.create_topic("orders", 2, file_delete_delay_ms="60000")
    world.append("orders", b"a")
    held = world.partition("orders")
    world.delete_topic("orders")
    with rejects_with(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        world.partition("orders")
    with rejects_with(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        held.fetch(0, 100)
    assert [name.rpartition("-")[2] for name in world.folders()] == ["delete", "delete"]
    world.run_maintenance(for_ms=50_000)
    assert len(world.folders()) == 2
    world.run_maintenance(for_ms=20_000)
    assert world.folders() == []


def test_a_topic_that_was_never_opened_is_deleted_too(world: World) -> None:
    world.create_topic("orders", 2)
    world.restart()
    world.delete_topic("orders")
    assert all(name.endswith("-delete") for name in world.folders())


def test_a_topic_created_again_starts_empty(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    world.delete_topic("orders")
    world.create_topic("orders", topic_id=b"another-topic-id")
    assert world.append("orders", b"b") == 0


def test_an_interrupted_delete_is_finished_after_a_restart(world: World) -> None:
    world.create_topic("orders")
    world.delete_topic("orders")
    assert len(world.folders()) == 1
    world.restart()
    world.run_maintenance()
    assert world.folders() == []


def test_a_folder_without_a_topic_is_marked_stray_and_kept(world: World) -> None:
    world.create_topic("orders")
    world.directories[0].create_log("ghost", 0, b"g" * 16)
    world.directories[0].create_log("__cluster_metadata", 0, b"m" * 16)
    world.restart()
    world.run_maintenance()
    metadata, ghost, orders = world.folders()
    assert (metadata, orders) == ("__cluster_metadata-0", "orders-0")
    assert ghost.startswith("ghost-0.")
    assert ghost.endswith("-stray")


def test_a_folder_of_another_topic_of_the_same_name_is_marked_stray(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"of the old topic")
    world.partitions.close()
    world.metadata_without_broker(
        records.RemoveTopicRecord(topic_id=b"orders".ljust(16, b"\0")),
        records.TopicRecord(name="orders", topic_id=b"n" * 16),
        records.PartitionRecord(
            partition_id=0,
            topic_id=b"n" * 16,
            replicas=[NODE_ID],
            isr=[NODE_ID],
            leader=NODE_ID,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes(16)],
        ),
    )
    world.start()
    assert world.append("orders", b"of the new one") == 0
    assert [name.rpartition("-")[2] for name in world.folders()] == ["0", "stray"]


def test_settings_of_the_cluster_reach_every_topic_that_has_none_of_its_own(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"x" * 500)
    world.metadata(
        records.ConfigRecord(
            resource_type=4, resource_name="", name="message.max.bytes", value="100"
        )
    )
    with rejects_with(ErrorCode.MESSAGE_TOO_LARGE):
        world.append("orders", b"x" * 500)


def test_a_high_watermark_behind_the_log_end_survives_a_restart(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), isr=(1,))
    world.append("orders", b"a", b"b")
    world.lead("orders", isr=(1, 2))
    world.append("orders", b"c")
    assert world.partition("orders").high_watermark == 2
    world.restart()
    assert world.partition("orders").high_watermark == 2
    assert world.partition("orders").log.log_end_offset == 3


def test_new_partitions_go_to_the_directory_that_has_fewest(
    new_world: Callable[..., World],
) -> None:
    world = new_world(disks=3)
    world.create_topic("orders", 7)
    assert sorted(len(world.folders(disk)) for disk in range(3)) == [2, 2, 3]
    world.restart()
    for index in range(7):
        world.append("orders", b"a", index=index)
    assert sum(len(world.folders(disk)) for disk in range(3)) == 7


def test_a_cordoned_directory_gets_nothing_new(new_world: Callable[..., World]) -> None:
    world = new_world(disks=2)
    world.metadata(
        records.ConfigRecord(
            resource_type=4,
            resource_name=str(NODE_ID),
            name="cordoned.log.dirs",
            value=str(world.paths[0]),
        )
    )
    world.create_topic("orders", 4)
    assert len(world.folders(0)) == 0
    assert len(world.folders(1)) == 4


def test_a_star_cordons_every_directory(new_world: Callable[..., World]) -> None:
    world = new_world(disks=2)
    assert world.partitions.log_dirs.cordoned_ids == []
    world.metadata(
        records.ConfigRecord(
            resource_type=4, resource_name=str(NODE_ID), name="cordoned.log.dirs", value="*"
        )
    )
    directories = world.partitions.log_dirs.directories
    assert world.partitions.log_dirs.cordoned_ids == [each.directory_id for each in directories]


def test_the_directory_of_a_partition_is_reported_until_the_metadata_has_it(
    new_world: Callable[..., World],
) -> None:
    world = new_world(disks=2)
    topic_id = world.create_topic("orders")
    directory_id = world.partition("orders").directory.directory_id
    assert world.partitions.unassigned_dirs == {(topic_id, 0): directory_id}
    world.metadata(
        records.PartitionChangeRecord(topic_id=topic_id, partition_id=0, directories=[directory_id])
    )
    assert world.partitions.unassigned_dirs == {}


def test_a_failed_directory_takes_only_its_own_partitions_offline(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(disks=2)
    world.create_topic("orders", 2)
    broken, whole = world.partition("orders", 0), world.partition("orders", 1)
    assert broken.directory is not whole.directory
    with monkeypatch.context() as failing:
        failing.setattr(os, "pwrite", fault_in_this_thread("pwrite", _fail))
        with pytest.raises(OSError, match="Input/output error"):
            world.append("orders", b"a", index=0)
    with rejects_with(ErrorCode.KAFKA_STORAGE_ERROR):
        world.append("orders", b"a", index=0)
    assert world.append("orders", b"a", index=1) == 0
    assert world.partitions.log_dirs.offline_paths == [broken.directory.path]
    world.run_maintenance(for_ms=DAY_MS // 24)
    world.create_topic("payments", 2)
    assert {world.partition("payments", i).directory for i in (0, 1)} == {whole.directory}


def _fail(*_: object) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_partition_of_a_directory_that_is_missing_at_start_is_not_created_elsewhere(
    new_world: Callable[..., World],
) -> None:
    world = new_world(disks=2)
    topic_id = world.create_topic("orders")
    home = world.partition("orders").directory
    world.metadata(
        records.PartitionChangeRecord(
            topic_id=topic_id, partition_id=0, directories=[home.directory_id]
        )
    )
    world.append("orders", b"a")
    world.restart_without(home.path)
    with rejects_with(ErrorCode.KAFKA_STORAGE_ERROR):
        world.partition("orders")


def test_a_damaged_log_is_rejected_logged_once_and_not_scanned_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("orders")
    world.restart()
    scans = []

    def find_damage(*_: object) -> Log:
        scans.append(1)
        raise CorruptLog("orders-0/00000000000000000000.log", 17, "no batch is there")

    monkeypatch.setattr(LogDirectory, "open_log", find_damage)
    for _ in range(2):
        with rejects_with(ErrorCode.KAFKA_STORAGE_ERROR):
            world.partition("orders")
    assert len(scans) == 1
    assert len([line for line in caplog.messages if "orders-0 is not served" in line]) == 1


def test_a_directory_that_fails_to_close_does_not_keep_the_others_from_closing(
    new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(disks=2)
    for topic in ("a", "b"):
        world.create_topic(topic)
        world.append(topic, b"x")
    first = world.directories[0]

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(first, "begin_checkpoint", fail)
    assert not world.partitions.close()
    world.start()
    assert [directory.was_clean_shutdown for directory in world.directories] == [False, True]


def test_damage_found_by_readers_is_logged_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    (log,) = (world.paths[0] / "orders-0").glob("*.log")
    log.write_bytes(b"\xff" * log.stat().st_size)
    for _ in range(3):
        with pytest.raises(CorruptLog):
            world.partition("orders").fetch(0, 1_000_000)
    assert [line for line in caplog.messages if "cannot be read" in line][1:] == []
    assert str(log) in caplog.text


def test_a_small_topic_has_its_folders_at_once_however_many_wait(world: World) -> None:
    world.create_topic("large", 100)
    world.create_topic("small", 2)
    assert {"small-0", "small-1"} <= set(world.folders())
    world.run_maintenance(for_ms=60_000)
    assert "large-99" in world.folders()
    assert "large-0" in world.folders()
