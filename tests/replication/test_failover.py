"""A failover step by step, as descriptions of Kafka's replication tell it, with real logs on disk.

Broker 101 leads, 102 and 103 follow. 101 dies with records its followers never had. 103 leads, and
writes records of its own where the lost ones were. 102 has one record too many and drops it; 101
comes back, and ends up with the same log as the others.
"""

from collections.abc import Callable

from tests.replication.cluster import Cluster, contents

from barnabas.wire.errors import ErrorCode


def offsets(cluster: Cluster, broker_id: int) -> tuple[int, int]:
    """The high watermark and the log end offset of a replica."""
    return cluster[broker_id].high_watermark, cluster[broker_id].log.log_end_offset


def test_after_a_failover_all_logs_become_equal_again(
    new_cluster: Callable[..., Cluster],
) -> None:
    cluster = new_cluster(101, 102, 103)
    cluster.create_topic(leader=101, min_insync_replicas="2")
    cluster.elect(101)
    assert cluster.state.leader_epoch == 1

    # 101 leads with epoch 1. Three records are on every broker, and committed on every broker.
    for value in (b"m0", b"m1", b"m2"):
        acknowledged = cluster.append(value)
    cluster.fetch_all(102, 103)
    assert cluster[101].commit_result(acknowledged, -1) is ErrorCode.NONE
    assert [offsets(cluster, each) for each in (101, 102, 103)] == [(3, 3), (3, 3), (3, 3)]

    # Two more come in. 102 fetches the first of them, 103 none; neither is committed.
    unpromised = cluster.append(b"m3")
    cluster.fetch(102)
    cluster.append(b"m4")
    assert cluster[101].commit_result(unpromised, -1) is None
    assert offsets(cluster, 101) == (3, 5)
    assert offsets(cluster, 102) == (3, 4)
    assert offsets(cluster, 103) == (3, 3)

    # 101 dies. The controller lets 103 lead with epoch 2: it is in sync, for it has all that
    # is committed. Its epoch begins at offset 3, where 102 has m3 of epoch 1 already.
    cluster.kill(101)
    cluster.elect(103, isr=(102, 103))
    assert cluster.state.leader_epoch == 2
    assert [*cluster[103].log.leader_epochs.entries] == [(1, 0), (2, 3)]
    assert offsets(cluster, 103) == (3, 3)
    assert not cluster[103].has_stale_high_watermark

    # 103 takes records of its own, at the offsets that m3 and m4 had.
    acknowledged = cluster.append(b"n3")
    cluster.append(b"n4")
    assert contents(cluster[103]) == [
        (1, b"m0"),
        (1, b"m1"),
        (1, b"m2"),
        (2, b"n3"),
        (2, b"n4"),
    ]
    assert offsets(cluster, 103) == (3, 5)

    # 102 fetches offset 4 from 103, with last fetched epoch 1. But epoch 1 ended at offset 3,
    # says 103; so 102 drops m3, and no more: no committed record is lost.
    assert cluster.fetch(102) == ErrorCode.NONE
    assert offsets(cluster, 102) == (3, 3)
    assert contents(cluster[102]) == [(1, b"m0"), (1, b"m1"), (1, b"m2")]

    # From there on it follows, and with it what 103 has written is committed.
    cluster.fetch(102)
    assert offsets(cluster, 103) == (3, 5)
    cluster.fetch(102)
    assert offsets(cluster, 102) == (5, 5)
    assert offsets(cluster, 103) == (5, 5)
    assert cluster[103].commit_result(acknowledged, -1) is ErrorCode.NONE
    assert contents(cluster[102]) == contents(cluster[103])

    # 101 comes back with m3 and m4 in its log, never committed, and a high watermark that it
    # had no time to write down. It no longer leads: the metadata has epoch 2, and it follows.
    cluster.restart(101)
    assert cluster[101].log.log_end_offset == 5
    assert cluster[101].high_watermark <= 3
    assert not cluster[101].is_leader
    assert [value for _, value in contents(cluster[101])] == [b"m0", b"m1", b"m2", b"m3", b"m4"]

    # Its first fetch gets the same response as 102: epoch 1 ended at offset 3.
    cluster.fetch(101)
    assert cluster[101].log.log_end_offset == 3
    assert contents(cluster[101]) == [(1, b"m0"), (1, b"m1"), (1, b"m2")]

    # It is not in sync before it has all committed records; then 103 submits it.
    assert cluster.submitted_isrs() == []
    cluster.fetch(101)
    assert cluster[101].log.log_end_offset == 5
    assert cluster.submitted_isrs() == []
    cluster.fetch(101)
    assert cluster.submitted_isrs() == [(102, 103, 101)]
    cluster.respond()
    assert cluster.state.isr == (102, 103, 101)

    # Only the two records that were never acknowledged are lost.
    cluster.append(b"n5")
    cluster.fetch_all(101, 102)
    assert [offsets(cluster, each) for each in (101, 102, 103)] == [(6, 6), (6, 6), (6, 6)]
    assert contents(cluster[101]) == contents(cluster[102]) == contents(cluster[103])
    for broker_id in (101, 102, 103):
        assert [*cluster[broker_id].log.leader_epochs.entries] == [(1, 0), (2, 3)]
