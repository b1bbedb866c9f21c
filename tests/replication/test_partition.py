"""What a partition's leader appends, serves and acknowledges."""

import errno
import logging
import os

import pytest
from tests.log_records import barnabas_log_lines
from tests.os_faults import fault_in_this_thread
from tests.replication.world import World, batch_of

from barnabas.log import LogDirFailure
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_batches


def rejects_with(code: ErrorCode) -> "pytest.RaisesExc[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


def test_offsets_are_assigned_in_order_and_the_only_replica_commits_at_once(
    world: World,
) -> None:
    world.create_topic("orders")
    assert world.append("orders", b"a", b"b") == 0
    assert world.append("orders", b"c") == 2
    assert world.partition("orders").high_watermark == 3
    assert world.partition("orders").last_stable_offset == 3


def test_batches_carry_the_leader_epoch_they_were_appended_in(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    world.lead("orders")
    world.append("orders", b"b")
    fetched = world.partition("orders").fetch(0, 1 << 20)
    assert fetched.records is not None
    epochs = [header.leader_epoch for _, header in iterate_batches(fetched.records.read())]
    assert epochs == [0, 1]


def test_a_broker_that_does_not_lead_rejects_requests(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), leader=2)
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        world.append("orders", b"a")
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        world.partition("orders").fetch(0, 100)


def test_an_older_leader_epoch_is_fenced_and_a_newer_one_unknown(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    world.lead("orders")
    partition = world.partition("orders")
    with rejects_with(ErrorCode.FENCED_LEADER_EPOCH):
        partition.fetch(0, 100, leader_epoch=0)
    with rejects_with(ErrorCode.UNKNOWN_LEADER_EPOCH):
        partition.fetch(0, 100, leader_epoch=2)
    assert partition.fetch(0, 100, leader_epoch=1).records is not None
    assert partition.fetch(0, 100, leader_epoch=-1).records is not None


def test_acks_all_needs_min_insync_replicas_and_acks_one_does_not(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), isr=(1,), min_insync_replicas="2")
    with rejects_with(ErrorCode.NOT_ENOUGH_REPLICAS):
        world.append("orders", b"a", acks=-1)
    assert world.append("orders", b"a", acks=1) == 0


def test_a_topic_with_fewer_replicas_than_min_insync_replicas_needs_them_all(world: World) -> None:
    world.create_topic("orders", min_insync_replicas="3")
    assert world.append("orders", b"a", acks=-1) == 0


def test_an_in_sync_follower_limits_the_high_watermark(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    world.append("orders", b"a")
    partition = world.partition("orders")
    assert partition.high_watermark == 0
    assert not partition.is_committed(1, acks=-1)
    assert partition.is_committed(1, acks=1)
    assert partition.fetch(0, 100).records is None
    assert partition.fetch(1, 100).records is None  # between the watermark and the end
    world.lead("orders", isr=(1,))
    assert partition.high_watermark == 1
    assert partition.is_committed(1, acks=-1)


def test_reading_outside_the_log_is_out_of_range(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    partition = world.partition("orders")
    for offset in (-1, 2):
        with rejects_with(ErrorCode.OFFSET_OUT_OF_RANGE):
            partition.fetch(offset, 100)
    assert partition.fetch(1, 100).records is None


def test_a_reader_whose_log_diverged_gets_the_diverging_epoch(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a", b"b")
    world.lead("orders")
    world.lead("orders")
    world.append("orders", b"c")
    partition = world.partition("orders")
    assert partition.fetch(2, 100, last_fetched_epoch=0).diverging_epoch is None
    assert partition.fetch(3, 100, last_fetched_epoch=0).diverging_epoch == (0, 2)
    # The leader of epoch 1 wrote nothing here.
    assert partition.fetch(3, 100, last_fetched_epoch=1).diverging_epoch == (0, 2)
    with rejects_with(ErrorCode.OFFSET_OUT_OF_RANGE):
        partition.fetch(1, 100, last_fetched_epoch=9)


def test_a_coordinator_writes_for_a_producer_without_sequence_numbers(world: World) -> None:
    world.create_topic("__consumer_offsets")
    partition = world.partition("__consumer_offsets")
    for _ in range(2):
        batch = batch_of(b"v", transactional=True, producer_id=7, producer_epoch=0)
        partition.append(batch, acks=-1, now_ms=world.now_ms, from_client=False)
    assert (partition.high_watermark, partition.last_stable_offset) == (2, 0)


def test_a_coordinators_batch_obeys_max_message_bytes(world: World) -> None:
    world.create_topic("__consumer_offsets", max_message_bytes="100")
    with rejects_with(ErrorCode.MESSAGE_TOO_LARGE):
        world.partition("__consumer_offsets").append(
            batch_of(b"x" * 100), acks=-1, now_ms=world.now_ms, from_client=False
        )


def test_an_open_transaction_is_hidden_from_readers_of_committed_records(world: World) -> None:
    world.create_topic("orders")
    partition = world.partition("orders")
    world.append("orders", b"before")
    world.write_in_transaction("orders", b"t")
    world.append("orders", b"after")
    assert partition.last_stable_offset == 1
    committed = partition.fetch(0, 1 << 20, isolation=1)
    assert committed.records is not None
    assert committed.records.next_offset == 1
    assert committed.aborted_transactions == []
    uncommitted = partition.fetch(0, 1 << 20)
    assert uncommitted.records is not None
    assert uncommitted.records.next_offset == 3
    assert uncommitted.aborted_transactions is None


def test_aborted_transactions_are_listed_for_readers_of_committed_records(world: World) -> None:
    world.create_topic("orders")
    partition = world.partition("orders")
    world.write_in_transaction("orders", b"t")
    assert world.end_transaction("orders", committed=False) == 1
    fetched = partition.fetch(0, 1 << 20, isolation=1)
    assert fetched.aborted_transactions == [(7, 0)]
    assert fetched.last_stable_offset == 2


def test_only_the_leader_begins_to_verify_a_transaction(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), leader=2)
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        world.write_in_transaction("orders", b"t")


def test_whether_transactions_are_verified_can_be_changed(world: World) -> None:
    world.create_topic("orders")
    batch = {"transactional": True, "producer_epoch": 0, "base_sequence": 0}
    partition = world.partition("orders")
    with rejects_with(ErrorCode.INVALID_TXN_STATE):
        partition.append(batch_of(b"t", producer_id=7, **batch), acks=-1, now_ms=world.now_ms)
    world.configure_broker(transaction_partition_verification_enable="false")
    partition.append(batch_of(b"t", producer_id=7, **batch), acks=-1, now_ms=world.now_ms)
    assert partition.last_stable_offset == 0


def test_a_marker_notifies_fetches_that_wait_for_committed_records(world: World) -> None:
    world.create_topic("orders")
    partition = world.partition("orders")
    world.write_in_transaction("orders", b"t")
    seen: list[int] = []
    parked = world.purgatory.delay(
        [partition], 1000, lambda *_: bool(seen.append(partition.last_stable_offset)), "Fetch"
    )
    world.end_transaction("orders", committed=True)
    assert seen == [2]
    parked.cancel()


def test_a_marker_of_version_two_has_an_epoch_of_its_own(world: World) -> None:
    world.create_topic("orders")
    world.write_in_transaction("orders", b"t")
    with rejects_with(ErrorCode.INVALID_PRODUCER_EPOCH):
        world.end_transaction("orders", committed=True, version=2)
    assert world.end_transaction("orders", committed=True, epoch=1, version=2) == 1


def test_open_transactions_are_open_after_a_restart(world: World) -> None:
    world.create_topic("orders")
    world.write_in_transaction("orders", b"t")
    world.restart(clean=False)
    assert world.partition("orders").last_stable_offset == 0
    world.end_transaction("orders", committed=False)
    assert world.partition("orders").fetch(0, 1 << 20, isolation=1).aborted_transactions == [(7, 0)]


def test_a_transaction_is_ended_only_where_this_broker_leads(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), leader=2)
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        world.end_transaction("orders", committed=True)


def test_a_transaction_is_ended_only_with_enough_replicas(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), isr=(1,), min_insync_replicas="2")
    with rejects_with(ErrorCode.NOT_ENOUGH_REPLICAS):
        world.end_transaction("orders", committed=True)


def test_records_are_deleted_up_to_an_offset_or_to_the_high_watermark(world: World) -> None:
    world.create_topic("orders")
    for value in (b"a", b"b", b"c"):
        world.append("orders", value)
    partition = world.partition("orders")
    assert partition.delete_records(2) == 2
    assert partition.delete_records(1) == 2  # never backwards
    with rejects_with(ErrorCode.OFFSET_OUT_OF_RANGE):
        partition.fetch(1, 100)
    with rejects_with(ErrorCode.OFFSET_OUT_OF_RANGE):
        partition.delete_records(4)
    assert partition.delete_records(-1) == 3


def test_every_deletion_by_a_client_has_one_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("orders")
    for value in (b"a", b"b", b"c"):
        world.append("orders", value)
    with caplog.at_level(logging.INFO, "barnabas.replication"):
        for offset in (2, 2, 1):
            world.partition("orders").delete_records(offset)
    assert barnabas_log_lines(caplog) == [
        "orders-0: incremented log start offset to 2 due to client delete records request"
    ]


def test_records_of_a_topic_that_is_only_compacted_are_not_deleted(world: World) -> None:
    world.create_topic("table", cleanup_policy="compact")
    with rejects_with(ErrorCode.POLICY_VIOLATION):
        world.partition("table").delete_records(0)
    world.configure("table", cleanup_policy="compact,delete")
    assert world.partition("table").delete_records(0) == 0


def test_new_settings_apply_from_the_next_append_on(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"x" * 500)
    world.configure("orders", max_message_bytes="100")
    with rejects_with(ErrorCode.MESSAGE_TOO_LARGE):
        world.append("orders", b"x" * 500)
    assert world.partition("orders").log.config.retention_ms == 7 * 24 * 60 * 60 * 1000
    world.configure("orders", retention_ms="1000")
    assert world.partition("orders").log.config.retention_ms == 1000


def test_with_flush_messages_an_append_is_acknowledged_once_it_is_on_disk(world: World) -> None:
    world.create_topic("orders", flush_messages="2")
    partition = world.partition("orders")
    world.background.hold()
    world.append("orders", b"a")
    assert partition.is_committed(1, acks=1)
    world.append("orders", b"b")
    assert not partition.is_committed(2, acks=1)
    world.append("orders", b"c")
    assert not partition.is_committed(3, acks=1)
    world.background.release()
    assert partition.is_committed(2, acks=1)
    assert partition.log.recovery_point >= 2


def test_a_full_disk_rejects_an_append_and_stays_online(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fault_in_this_thread("pwrite", _fails_with(errno.ENOSPC)))
        with pytest.raises(LogDirFailure):
            world.append("orders", b"b")
    assert world.append("orders", b"b") == 1


def _fails_with(code: int) -> object:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_broken_disk_takes_its_partitions_offline(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", 2)
    world.append("orders", b"a")
    world.append("orders", b"a", index=1)
    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", fault_in_this_thread("pwrite", _fails_with(errno.EIO)))
        with pytest.raises(LogDirFailure):
            world.append("orders", b"b")
    for index in (0, 1):
        with rejects_with(ErrorCode.KAFKA_STORAGE_ERROR):
            world.append("orders", b"b", index=index)
        with rejects_with(ErrorCode.KAFKA_STORAGE_ERROR):
            world.partition("orders", index).fetch(0, 100)
