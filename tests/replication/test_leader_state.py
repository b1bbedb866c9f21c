"""The leader's state: followers, in-sync replicas, high watermark."""

from collections.abc import Callable

import pytest
from tests.replication.cluster import EPOCH, Cluster
from tests.replication.world import registration

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import metadata_records as records

LAG_MS = 30_000


def rejects_with(code: ErrorCode) -> "pytest.RaisesExc[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


# Committing


def test_a_record_is_committed_once_every_in_sync_replica_fetches_the_next(
    cluster: Cluster,
) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)  # is given the record
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)  # has it
    assert cluster.leader.high_watermark == end
    assert cluster[3].high_watermark == end, "it learns so by the same response"
    assert cluster[2].high_watermark == 0
    cluster.fetch(2)
    assert cluster[2].high_watermark == end


def test_consumers_see_committed_records_and_followers_all(cluster: Cluster) -> None:
    cluster.append(b"a")
    assert cluster.leader.fetch(0, 1 << 20).records is None
    cluster.fetch(2)
    assert cluster[2].log.log_end_offset == 1


def test_acks_all_waits_for_the_in_sync_replicas_and_acks_one_for_the_leader(
    cluster: Cluster,
) -> None:
    end = cluster.append(b"a")
    assert cluster.leader.is_committed(end, 1)
    assert cluster.leader.commit_result(end, -1) is None
    cluster.fetch_all(2, 3)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE


def test_a_leader_that_is_replaced_responds_to_waiting_producers(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    old = cluster.leader
    cluster.elect(2)
    assert old.commit_result(end, -1) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_under_min_isr_acks_all_is_rejected_and_nothing_is_committed(
    cluster: Cluster,
) -> None:
    cluster.change(isr=[1])
    with rejects_with(ErrorCode.NOT_ENOUGH_REPLICAS):
        cluster.append(b"a")
    cluster.append(b"b", acks=1)
    assert cluster.leader.high_watermark == 0, "KIP-966"
    cluster.change(isr=[1, 2])
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 1


def test_an_append_committed_under_min_isr_gets_not_enough_replicas_after_append(
    cluster: Cluster,
) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.change(isr=[1])
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_fewer_replicas_than_min_insync_replicas_need_all_of_them(
    new_cluster: Callable[..., Cluster],
) -> None:
    cluster = new_cluster(1, 2)
    cluster.create_topic(min_insync_replicas="3")
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE
    cluster.change(isr=[1])
    with rejects_with(ErrorCode.NOT_ENOUGH_REPLICAS):
        cluster.append(b"b")


def test_a_lower_min_insync_replicas_commits_what_waited_for_it(cluster: Cluster) -> None:
    cluster.change(isr=[1])
    cluster.pass_time(LAG_MS + 1)
    cluster.append(b"a", acks=1)
    cluster.worlds[1].configure("orders", min_insync_replicas="1")
    assert cluster.leader.high_watermark == 1


def test_the_last_stable_offset_stops_at_the_high_watermark(cluster: Cluster) -> None:
    cluster.append(b"a")
    assert cluster.leader.last_stable_offset == 0
    cluster.fetch_all(2, 3)
    assert cluster.leader.last_stable_offset == 1


# Leading


def test_a_new_leader_does_not_guess_what_was_committed_before(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.append(b"b")
    cluster.fetch(2)
    cluster.elect(2, isr=(2, 3))
    new = cluster.leader
    assert (new.high_watermark, new.log.log_end_offset, new.has_stale_high_watermark) == (
        1,
        2,
        True,
    )
    cluster.fetch_all(3)
    assert (new.high_watermark, new.has_stale_high_watermark) == (2, False)


def test_a_leader_begins_its_epoch_where_its_log_ends(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.elect(2)
    assert tuple(cluster[2].log.leader_epochs.entries)[-1] == (1, 1)
    cluster.append(b"b")
    assert cluster[2].log.leader_epochs.epoch_for_offset(1) == 1


def test_a_leader_that_missed_another_one_forgets_how_far_followers_were(
    cluster: Cluster,
) -> None:
    cluster.append(b"a")
    cluster.fetch_all(3)
    cluster.stop_metadata(1)
    cluster.elect(2)
    cluster.fetch(3)  # truncates what only broker 1 has
    assert cluster[3].log.log_end_offset == 0
    cluster.elect(1)
    cluster.resume_metadata(1)
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 0
    cluster.fetch_all(3)
    assert cluster.leader.high_watermark == 1


def test_fetches_with_another_leader_epoch_are_rejected(cluster: Cluster) -> None:
    cluster.elect(2)
    request = {"log_start_offset": 0, "now_ms": cluster.now_ms}
    with rejects_with(ErrorCode.FENCED_LEADER_EPOCH):
        cluster[2].fetch_as_follower(1, EPOCH, 0, 99, leader_epoch=0, **request)
    with rejects_with(ErrorCode.UNKNOWN_LEADER_EPOCH):
        cluster[2].fetch_as_follower(1, EPOCH, 0, 99, leader_epoch=2, **request)
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        cluster[1].fetch_as_follower(2, EPOCH, 0, 99, leader_epoch=1, **request)


def test_a_fetch_of_a_broker_without_a_replica_is_rejected(cluster: Cluster) -> None:
    request = {"log_start_offset": 0, "now_ms": cluster.now_ms}
    with rejects_with(ErrorCode.UNKNOWN_LEADER_EPOCH):
        cluster[1].fetch_as_follower(9, EPOCH, 0, 99, leader_epoch=0, **request)
    with rejects_with(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        cluster[1].fetch_as_follower(9, EPOCH, 0, 99, **request)


def test_a_follower_beyond_the_log_or_before_it_is_out_of_range(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.leader.delete_records(1)
    for offset in (0, 2):
        with rejects_with(ErrorCode.OFFSET_OUT_OF_RANGE):
            cluster.leader.fetch_as_follower(
                2, EPOCH, offset, 99, log_start_offset=0, now_ms=cluster.now_ms
            )


# In-sync replicas


def test_a_follower_that_lags_too_long_is_removed_from_the_isr(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.pass_time(LAG_MS)
    cluster.fetch(2)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.submitted_isrs() == []
    cluster.pass_time(1)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.submitted_isrs() == [(1, 2)]


def test_a_clock_that_is_set_back_gives_followers_no_more_time(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.append(b"b")
    cluster.pass_time(-3_600_000)
    for value in (b"c", b"d"):
        cluster.fetch(2)  # gets a record, and is behind again
        cluster.append(value)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.submitted_isrs() == [(1, 2)]


def test_a_follower_stays_in_the_isr_until_the_controller_decides(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.pass_time(LAG_MS + 1)
    cluster.fetch(2)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.leader.high_watermark == 0
    cluster.respond()
    assert cluster.leader.high_watermark == end
    assert cluster.state.isr == (1, 2)


def test_a_caught_up_follower_does_not_lag_right_after_an_append(
    cluster: Cluster,
) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.pass_time(10 * LAG_MS)  # its fetches find nothing, and cost nothing
    cluster.append(b"b")
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.submitted_isrs() == []


def test_a_follower_that_is_always_a_little_behind_stays_in_sync(cluster: Cluster) -> None:
    for _ in range(10):
        cluster.append(b"a")
        cluster.fetch(2)  # gets this one, and has what there was at its fetch before
        cluster.fetch(3)
        cluster.pass_time(LAG_MS // 2)
        cluster.shrink_isr(cluster.state.leader)
    assert cluster.submitted_isrs() == []


def test_a_caught_up_follower_is_submitted_and_counts_at_once(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    end = cluster.append(b"a")
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2, 3)], "it has what counts: nothing does yet"
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 0, "though the controller has two in sync"
    cluster.fetch(3)
    assert cluster.leader.high_watermark == end
    cluster.respond()
    assert cluster.state.isr == (1, 2, 3)


def test_a_follower_about_to_join_counts_for_the_high_watermark(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [], "it lacks a record that counts"
    end = cluster.append(b"b")
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 1
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2, 3)]
    cluster.fetch(3)
    assert cluster.leader.high_watermark == end


def test_a_follower_about_to_join_that_crashed_counts_no_longer_than_the_lag_time(
    cluster: Cluster,
) -> None:
    """Nothing else happens: no append, and no fetch with progress."""
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.respond(ErrorCode.INELIGIBLE_REPLICA)
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.commit_result(end, -1) is None
    cluster.pass_time(LAG_MS + 1)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE
    assert cluster.submitted_isrs() == []


def test_a_follower_before_the_epoch_start_offset_is_not_submitted(cluster: Cluster) -> None:
    """What counted under the leader before may lie there, unknown to this one."""
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.elect(2, isr=(1, 2))
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)
    assert cluster.submitted_isrs() == []
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2, 3)]


@pytest.mark.parametrize(
    "change",
    [
        records.FenceBrokerRecord(id=3, epoch=EPOCH),
        records.BrokerRegistrationChangeRecord(
            broker_id=3, broker_epoch=EPOCH, in_controlled_shutdown=1
        ),
        registration(3, epoch=EPOCH + 1, fenced=True),
    ],
    ids=["fenced", "stopping", "registered anew"],
)
def test_ineligible_brokers_are_not_submitted(cluster: Cluster, change: object) -> None:
    cluster.change(isr=[1, 2])
    cluster.commit_metadata(change)  # type: ignore[arg-type]
    cluster.fetch(3)
    assert cluster.submitted_isrs() == []


def test_a_fetch_with_an_old_broker_epoch_changes_nothing(cluster: Cluster) -> None:
    """KIP-903: it may have had what the broker that is back has lost."""
    cluster.append(b"a")
    cluster.fetch(3)
    cluster.fetch_all(2)
    cluster.commit_metadata(registration(3, epoch=EPOCH + 1))
    assert cluster.fetch(3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.leader.high_watermark == 0


def test_an_isr_change_has_the_broker_epochs_of_the_last_fetches(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    ((request, _),) = cluster.worlds[1].controller_requests
    assert (request.broker_id, request.broker_epoch) == (1, EPOCH)
    (requested,) = request.topics[0].partitions
    assert [(each.broker_id, each.broker_epoch) for each in requested.new_isr_with_epochs] == [
        (1, EPOCH),
        (2, -1),  # it has not fetched from this leader yet
        (3, EPOCH),
    ]
    assert (requested.leader_epoch, requested.partition_epoch) == (0, 1)


def test_an_isr_change_waits_for_the_pending_one(cluster: Cluster) -> None:
    cluster.change(isr=[1])
    cluster.fetch(2)
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2)]
    cluster.respond()
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2, 3)]


def test_a_rejected_isr_change_can_be_submitted_again(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.respond(ErrorCode.INELIGIBLE_REPLICA)
    assert not cluster.leader.is_in_sync(3)
    cluster.fetch(3)
    assert cluster.submitted_isrs() == [(1, 2, 3)]


def test_a_follower_that_may_have_joined_counts_until_the_metadata_arrives(
    cluster: Cluster,
) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.respond(ErrorCode.INVALID_UPDATE_VERSION)  # an response may have been lost before
    assert cluster.leader.is_in_sync(3)
    cluster.change(isr=[1, 2])
    assert not cluster.leader.is_in_sync(3)


def test_metadata_older_than_the_controllers_response_is_ignored(cluster: Cluster) -> None:
    leader = cluster.leader
    old = leader.state
    assert old is not None
    cluster.change(isr=[1, 2])
    leader.make_leader_or_follower(old, cluster.now_ms)
    assert leader.state == cluster.state


# Deleting records


def test_records_are_deleted_when_every_live_follower_has_deleted_them(
    cluster: Cluster,
) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.leader.delete_records(1)
    cluster.fetch_all(2)
    assert cluster.leader.low_watermark == 0
    cluster.fetch_all(3)
    assert cluster.leader.low_watermark == 1
    assert [cluster[each].log.log_start_offset for each in (1, 2, 3)] == [1, 1, 1]


def test_fenced_followers_do_not_delay_delete_records(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.commit_metadata(records.FenceBrokerRecord(id=3, epoch=EPOCH))
    cluster.leader.delete_records(1)
    cluster.fetch_all(2)
    assert cluster.leader.low_watermark == 1
