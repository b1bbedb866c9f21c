"""How a leader counts what its followers have, and whom it takes to be in sync."""

from collections.abc import Callable

import pytest
from tests.replication.cluster import EPOCH, Cluster
from tests.replication.world import registration

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import metadata_records as records

LAG_MS = 30_000


def refused(code: ErrorCode) -> "pytest.RaisesExc[KafkaError]":
    return pytest.raises(KafkaError, match=code.name)


# What counts


def test_a_record_counts_once_all_in_sync_have_asked_for_the_next(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)  # is given the record
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)  # has it
    assert cluster.leader.high_watermark == end
    assert cluster[3].high_watermark == end, "it learns so by the same answer"
    assert cluster[2].high_watermark == 0
    cluster.fetch(2)
    assert cluster[2].high_watermark == end


def test_consumers_see_only_what_counts_and_followers_all_there_is(cluster: Cluster) -> None:
    cluster.append(b"a")
    assert cluster.leader.fetch(0, 1 << 20).records is None
    cluster.fetch(2)
    assert cluster[2].log.log_end_offset == 1


def test_acks_all_is_promised_by_all_in_sync_and_acks_one_by_the_leader(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    assert cluster.leader.is_committed(end, 1)
    assert cluster.leader.commit_result(end, -1) is None
    cluster.fetch_all(2, 3)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE


def test_who_loses_the_lead_says_so_to_producers_that_wait(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    old = cluster.leader
    cluster.elect(2)
    assert old.commit_result(end, -1) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_with_too_few_in_sync_nothing_is_taken_at_acks_all_and_nothing_counts(
    cluster: Cluster,
) -> None:
    cluster.change(isr=[1])
    with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
        cluster.append(b"a")
    cluster.append(b"b", acks=1)
    assert cluster.leader.high_watermark == 0, "KIP-966"
    cluster.change(isr=[1, 2])
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 1


def test_an_append_that_counts_with_too_few_left_in_sync_is_told_as_such(
    cluster: Cluster,
) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.change(isr=[1])
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_fewer_replicas_than_the_minimum_need_all_of_them_and_no_more(
    new_cluster: Callable[..., Cluster],
) -> None:
    cluster = new_cluster(1, 2)
    cluster.create_topic(min_insync_replicas="3")
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE
    cluster.change(isr=[1])
    with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
        cluster.append(b"b")


def test_a_lower_minimum_lets_count_what_waited_for_it(cluster: Cluster) -> None:
    cluster.change(isr=[1])
    cluster.pass_time(LAG_MS + 1)
    cluster.append(b"a", acks=1)
    cluster.worlds[1].configure("orders", min_insync_replicas="1")
    assert cluster.leader.high_watermark == 1


def test_what_is_said_of_transactions_stops_at_what_counts(cluster: Cluster) -> None:
    cluster.append(b"a")
    assert cluster.leader.last_stable_offset == 0
    cluster.fetch_all(2, 3)
    assert cluster.leader.last_stable_offset == 1


# Who leads


def test_a_new_leader_does_not_guess_what_counted_before(cluster: Cluster) -> None:
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


def test_an_old_leader_is_told_by_its_epoch_and_a_hasty_follower_too(cluster: Cluster) -> None:
    cluster.elect(2)
    asked = {"log_start_offset": 0, "now_ms": cluster.now_ms}
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        cluster[2].fetch_as_follower(1, EPOCH, 0, 99, leader_epoch=0, **asked)
    with refused(ErrorCode.UNKNOWN_LEADER_EPOCH):
        cluster[2].fetch_as_follower(1, EPOCH, 0, 99, leader_epoch=2, **asked)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        cluster[1].fetch_as_follower(2, EPOCH, 0, 99, leader_epoch=1, **asked)


def test_a_broker_without_a_replica_is_refused_as_who_may_know_more(cluster: Cluster) -> None:
    asked = {"log_start_offset": 0, "now_ms": cluster.now_ms}
    with refused(ErrorCode.UNKNOWN_LEADER_EPOCH):
        cluster[1].fetch_as_follower(9, EPOCH, 0, 99, leader_epoch=0, **asked)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        cluster[1].fetch_as_follower(9, EPOCH, 0, 99, **asked)


def test_a_follower_beyond_the_log_or_before_it_is_out_of_range(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.leader.delete_records(1)
    for offset in (0, 2):
        with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
            cluster.leader.fetch_as_follower(
                2, EPOCH, offset, 99, log_start_offset=0, now_ms=cluster.now_ms
            )


# Who is in sync


def test_a_follower_that_lags_too_long_is_proposed_to_be_left_out(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.pass_time(LAG_MS)
    cluster.fetch(2)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.proposed() == []
    cluster.pass_time(1)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.proposed() == [(1, 2)]


def test_a_clock_that_is_set_back_prolongs_nobodys_time(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.append(b"b")
    cluster.pass_time(-3_600_000)
    for value in (b"c", b"d"):
        cluster.fetch(2)  # gets a record, and is behind again
        cluster.append(value)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.proposed() == [(1, 2)]


def test_nobody_is_left_out_before_the_controller_says_so(cluster: Cluster) -> None:
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.pass_time(LAG_MS + 1)
    cluster.fetch(2)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.leader.high_watermark == 0
    cluster.decide()
    assert cluster.leader.high_watermark == end
    assert cluster.state.isr == (1, 2)


def test_a_follower_that_had_everything_is_not_late_right_after_an_append(
    cluster: Cluster,
) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.pass_time(10 * LAG_MS)  # its fetches find nothing, and cost nothing
    cluster.append(b"b")
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.proposed() == []


def test_a_follower_that_is_always_a_little_behind_stays_in_sync(cluster: Cluster) -> None:
    for _ in range(10):
        cluster.append(b"a")
        cluster.fetch(2)  # gets this one, and has what there was at its fetch before
        cluster.fetch(3)
        cluster.pass_time(LAG_MS // 2)
        cluster.shrink_isr(cluster.state.leader)
    assert cluster.proposed() == []


def test_who_has_caught_up_is_proposed_and_waited_for_at_once(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    end = cluster.append(b"a")
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2, 3)], "it has what counts: nothing does yet"
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 0, "though the controller has two in sync"
    cluster.fetch(3)
    assert cluster.leader.high_watermark == end
    cluster.decide()
    assert cluster.state.isr == (1, 2, 3)


def test_who_is_about_to_join_is_waited_for_or_it_would_never_get_there(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.fetch(3)
    assert cluster.proposed() == [], "it lacks a record that counts"
    end = cluster.append(b"b")
    cluster.fetch_all(2)
    assert cluster.leader.high_watermark == 1
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2, 3)]
    cluster.fetch(3)
    assert cluster.leader.high_watermark == end


def test_who_was_about_to_join_and_died_is_not_waited_for_for_ever(cluster: Cluster) -> None:
    """Nothing else happens: no append, and no fetch that tells of progress."""
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.decide(ErrorCode.INELIGIBLE_REPLICA)
    end = cluster.append(b"a")
    cluster.fetch_all(2)
    assert cluster.leader.commit_result(end, -1) is None
    cluster.pass_time(LAG_MS + 1)
    cluster.shrink_isr(cluster.state.leader)
    assert cluster.leader.commit_result(end, -1) is ErrorCode.NONE
    assert cluster.proposed() == []


def test_who_has_less_than_the_leader_began_with_is_not_proposed(cluster: Cluster) -> None:
    """What counted under the leader before may lie there, unknown to this one."""
    cluster.append(b"a")
    cluster.fetch_all(2)
    cluster.elect(2, isr=(1, 2))
    assert cluster.leader.high_watermark == 0
    cluster.fetch(3)
    assert cluster.proposed() == []
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2, 3)]


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
def test_brokers_that_cannot_serve_are_not_proposed(cluster: Cluster, change: object) -> None:
    cluster.change(isr=[1, 2])
    cluster.tell(change)  # type: ignore[arg-type]
    cluster.fetch(3)
    assert cluster.proposed() == []


def test_a_fetch_of_an_earlier_life_changes_nothing(cluster: Cluster) -> None:
    """KIP-903: it may have had what the broker that is back has lost."""
    cluster.append(b"a")
    cluster.fetch(3)
    cluster.fetch_all(2)
    cluster.tell(registration(3, epoch=EPOCH + 1))
    assert cluster.fetch(3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.leader.high_watermark == 0


def test_the_proposal_names_the_lives_that_were_heard_of(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    ((request, _),) = cluster.worlds[1].asked
    assert (request.broker_id, request.broker_epoch) == (1, EPOCH)
    (wanted,) = request.topics[0].partitions
    assert [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs] == [
        (1, EPOCH),
        (2, -1),  # it has not fetched from this leader yet
        (3, EPOCH),
    ]
    assert (wanted.leader_epoch, wanted.partition_epoch) == (0, 1)


def test_one_proposal_waits_for_another(cluster: Cluster) -> None:
    cluster.change(isr=[1])
    cluster.fetch(2)
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2)]
    cluster.decide()
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2, 3)]


def test_a_proposal_that_was_refused_for_good_can_be_made_again(cluster: Cluster) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.decide(ErrorCode.INELIGIBLE_REPLICA)
    assert not cluster.leader.is_in_sync(3)
    cluster.fetch(3)
    assert cluster.proposed() == [(1, 2, 3)]


def test_who_may_have_been_taken_in_is_waited_for_until_the_metadata_tells(
    cluster: Cluster,
) -> None:
    cluster.change(isr=[1, 2])
    cluster.fetch(3)
    cluster.decide(ErrorCode.INVALID_UPDATE_VERSION)  # an answer may have been lost before
    assert cluster.leader.is_in_sync(3)
    cluster.change(isr=[1, 2])
    assert not cluster.leader.is_in_sync(3)


def test_metadata_older_than_the_controllers_answer_is_passed_over(cluster: Cluster) -> None:
    leader = cluster.leader
    old = leader.state
    assert old is not None
    cluster.change(isr=[1, 2])
    leader.make_leader_or_follower(old, cluster.now_ms)
    assert leader.state == cluster.state


# Records that go


def test_records_are_deleted_when_every_living_follower_has_deleted_them(
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


def test_the_dead_are_not_waited_for(cluster: Cluster) -> None:
    cluster.append(b"a")
    cluster.fetch_all(2, 3)
    cluster.tell(records.FenceBrokerRecord(id=3, epoch=EPOCH))
    cluster.leader.delete_records(1)
    cluster.fetch_all(2)
    assert cluster.leader.low_watermark == 1
