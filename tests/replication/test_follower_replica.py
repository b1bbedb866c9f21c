"""How a replica follows its leader: what it appends, lets count, and drops."""

import logging

import pytest
from tests.log_records import barnabas_log_records
from tests.replication.world import World, batch_of

from barnabas.replication import Partition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import CorruptBatch, assign_offset, iterate_batches

LEADER = 2


@pytest.fixture
def follower(world: World) -> Partition:
    world.create_topic("orders", replicas=(LEADER, 1), leader=LEADER)
    return world.partition("orders")


def from_leader(first_offset: int, *values: bytes, epoch: int = 0) -> memoryview:
    """A batch as the leader has it in its log."""
    batch = batch_of(*values)
    assign_offset(batch, 0, first_offset, epoch)
    return batch


def replicate(
    follower: Partition, records: memoryview, *, high_watermark: int = 0, start_offset: int = 0
) -> None:
    follower.follower.append(
        records,
        leader_high_watermark=high_watermark,
        leader_log_start_offset=start_offset,
        now_ms=1,
    )


def test_the_leaders_batches_keep_their_offsets_and_epochs(
    follower: Partition, world: World
) -> None:
    for _ in range(3):
        world.lead("orders", leader=LEADER)
    replicate(follower, from_leader(0, b"a", b"b", epoch=3))
    records = follower.log.read(0, 1 << 20, upto=2)
    assert records is not None
    [(_, header)] = iterate_batches(records.read())
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (0, 1, 3)
    assert follower.log.latest_epoch == 3


def test_batches_of_a_later_epoch_than_the_leaders_are_not_appended(follower: Partition) -> None:
    batches = bytes(from_leader(0, b"a")) + bytes(from_leader(1, b"b", epoch=1))
    replicate(follower, memoryview(batches))
    assert follower.log.log_end_offset == 1


def test_the_high_watermark_follows_the_leaders_up_to_the_log_end(
    follower: Partition,
) -> None:
    replicate(follower, from_leader(0, b"a", b"b"), high_watermark=1)
    assert follower.high_watermark == 1
    follower.follower.update_offsets(leader_high_watermark=9, leader_log_start_offset=0)
    assert follower.high_watermark == 2


def test_a_leader_with_a_smaller_high_watermark_does_not_lower_ours(
    follower: Partition,
) -> None:
    replicate(follower, from_leader(0, b"a", b"b"), high_watermark=2)
    follower.follower.update_offsets(leader_high_watermark=0, leader_log_start_offset=0)
    assert follower.high_watermark == 2


def test_records_that_the_leader_deleted_are_deleted(follower: Partition) -> None:
    replicate(follower, from_leader(0, b"a", b"b", b"c"), high_watermark=3, start_offset=2)
    assert follower.log.log_start_offset == 2


def test_damaged_bytes_are_not_appended(follower: Partition) -> None:
    damaged = from_leader(0, b"a", b"b")
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch):
        replicate(follower, damaged)
    assert follower.log.log_end_offset == 0


def test_a_batch_that_does_not_continue_the_log_is_rejected(follower: Partition) -> None:
    replicate(follower, from_leader(0, b"a", b"b"))
    with pytest.raises(KafkaError, match=ErrorCode.OFFSET_OUT_OF_RANGE.name):
        replicate(follower, from_leader(1, b"x"))


def test_an_empty_log_may_begin_within_the_leaders_first_batch(follower: Partition) -> None:
    follower.follower.truncate_fully_and_start_at(2)
    records = from_leader(0, b"a", b"b", b"c", b"d")
    replicate(follower, records, high_watermark=4, start_offset=2)
    assert (
        follower.log.log_start_offset,
        follower.high_watermark,
        follower.log.log_end_offset,
    ) == (
        2,
        4,
        4,
    )


def test_uncommitted_records_are_truncated_without_a_warning(
    follower: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    replicate(follower, from_leader(0, b"a"), high_watermark=1)
    replicate(follower, from_leader(1, b"b"))
    with caplog.at_level(logging.WARNING):
        follower.follower.truncate_to(1)
    assert (follower.log.log_end_offset, follower.high_watermark) == (1, 1)
    assert not barnabas_log_records(caplog)


def test_committed_records_are_truncated_with_a_warning(
    follower: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    replicate(follower, from_leader(0, b"a"), high_watermark=1)
    replicate(follower, from_leader(1, b"b"), high_watermark=2)
    with caplog.at_level(logging.WARNING):
        follower.follower.truncate_to(1)
    assert (follower.log.log_end_offset, follower.high_watermark) == (1, 1)
    assert "orders-0 loses committed records" in caplog.text


def test_a_log_behind_the_leaders_start_restarts_there(
    follower: Partition,
) -> None:
    replicate(follower, from_leader(0, b"a"), high_watermark=1)
    follower.follower.truncate_fully_and_start_at(7)
    assert (
        follower.log.log_start_offset,
        follower.high_watermark,
        follower.log.log_end_offset,
    ) == (
        7,
        7,
        7,
    )
    replicate(follower, from_leader(7, b"b"), high_watermark=8, start_offset=7)
    assert follower.high_watermark == 8


def test_an_epoch_without_records_is_removed_if_the_leader_does_not_have_it(
    follower: Partition,
) -> None:
    replicate(follower, from_leader(0, b"a"), high_watermark=1)
    follower.log.assign_epoch_start_offset(4, 1)  # it led, and nothing was appended
    follower.follower.truncate_to(1)
    assert [*follower.log.leader_epochs.entries] == [(0, 0)]
