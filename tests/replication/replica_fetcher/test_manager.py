"""Which leaders a broker follows, over which connections, and when it fetches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.replication.replica_fetcher.cluster import Cluster
from tests.replication.replica_fetcher.pair import content

from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.fetch import FetchRequest


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def end_of(cluster: Cluster, node_id: int, topic: str = "orders", index: int = 0) -> int:
    return cluster.brokers[node_id].partition(topic, index).log.log_end_offset


def followed_by(cluster: Cluster, node_id: int) -> list[tuple[int, int]]:
    """Leaders and partitions."""
    fetchers = cluster.brokers[node_id].fetchers
    return sorted(
        (leader_id, each.partition.index)
        for leader_id, _, fetcher in fetchers.by_leader()
        for each in fetcher
    )


def test_records_and_the_high_watermark_reach_the_follower(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    leader, follower = cluster.brokers[1], cluster.brokers[2]
    leader.append("orders", b"a", acks=1)
    leader.append("orders", b"b", acks=1)
    cluster.run(20)
    assert end_of(cluster, 2) == 2
    assert leader.partition("orders").high_watermark == 2
    cluster.run(600)
    assert follower.partition("orders").high_watermark == 2
    assert content(follower.partition("orders").log) == content(leader.partition("orders").log)
    assert follower.fetchers.max_lag == 0
    assert follower.fetchers.received_bytes == leader.partition("orders").log.size_bytes


def test_an_idle_leader_gets_two_fetches_per_second(cluster: Cluster) -> None:
    cluster.create_topic("orders", 20)
    cluster.run(1_000)
    cluster.peers.sent.clear()
    cluster.run(10_000)
    assert 18 <= len(cluster.peers.sent) <= 20
    assert all(not request.topics for _, request in cluster.peers.sent)  # type: ignore[attr-defined]


def test_leaders_are_followed_as_they_change(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    assert followed_by(cluster, 2) == [(1, 0)]
    assert followed_by(cluster, 1) == []
    cluster.change_metadata(lambda broker: broker.lead("orders", leader=2))
    cluster.run(10)
    assert followed_by(cluster, 1) == [(2, 0)]
    assert followed_by(cluster, 2) == []
    cluster.brokers[2].append("orders", b"a", acks=1)
    cluster.run(20)
    assert end_of(cluster, 1) == 1
    cluster.change_metadata(lambda broker: broker.delete_topic("orders"))
    assert followed_by(cluster, 1) == []


def test_a_partition_without_a_leader_is_not_followed(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.change_metadata(lambda broker: broker.lead("orders", leader=-1))
    assert followed_by(cluster, 2) == []


def test_a_change_of_the_isr_does_not_disturb_the_fetch_in_flight(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    before = list(cluster.peers.dialled)
    cluster.change_metadata(
        lambda broker: broker.metadata(
            records.PartitionChangeRecord(topic_id=b"orders".ljust(16, b"\0"), isr=[1])
        )
    )
    cluster.run(100)
    assert cluster.peers.dialled == before
    assert followed_by(cluster, 2) == [(1, 0)]


def test_an_unreachable_broker_is_retried_after_the_backoff(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    del cluster.peers.listening[9091]
    cluster.run(600)
    cluster.peers.sent.clear()
    cluster.run(3_000)
    assert len(cluster.peers.sent) == 3
    cluster.listen(1)
    cluster.brokers[1].append("orders", b"a", acks=1)
    cluster.run(1_100)
    assert end_of(cluster, 2) == 1


def test_a_leader_is_found_at_its_new_address(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    cluster.change_metadata(lambda broker: cluster.register(broker, 1, fenced=True))
    cluster.peers.listening.clear()
    cluster.peers.sent.clear()
    cluster.run(5_000)
    assert cluster.peers.sent == []  # its address is unknown
    cluster.listen(1, 9999)
    cluster.change_metadata(lambda broker: cluster.register(broker, 1, 9999))
    cluster.brokers[1].append("orders", b"a", acks=1)
    cluster.run(20)
    assert end_of(cluster, 2) == 1
    assert cluster.peers.dialled[-1] == (2, 9999, "replica-0")


def test_a_new_partition_does_not_wait_for_a_fetch_that_does_not_name_it(
    cluster: Cluster,
) -> None:
    cluster.create_topic("orders")
    cluster.run(700)  # a fetch waits at the leader
    cluster.create_topic("payments")
    cluster.brokers[1].append("payments", b"a", acks=1)
    cluster.run(50)
    assert end_of(cluster, 2, "payments") == 1


def test_many_new_partitions_do_not_cancel_many_fetches(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(700)
    before = len(cluster.peers.dialled)
    for number in range(30):
        cluster.create_topic(f"topic-{number}")
        cluster.run(30)
    assert len(cluster.peers.dialled) - before <= 3


def test_a_new_leader_is_followed_soon_though_it_gets_its_metadata_later(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.create_topic("idle", leader=2)
    cluster.run(700)
    cluster.brokers[1].lead("orders", leader=2)
    cluster.run(60)
    cluster.brokers[2].lead("orders", leader=2)
    cluster.brokers[2].append("orders", b"a", acks=1)
    cluster.run(150)
    assert end_of(cluster, 1) == 1


def test_the_loop_handles_other_events_while_many_logs_are_opened(cluster: Cluster) -> None:
    counts: list[int] = []

    def look() -> None:
        counts.append(len(followed_by(cluster, 2)))
        if counts[-1] < 100:
            cluster.loop.call_soon(look)

    cluster.create_topic("orders", 100)
    look()
    cluster.run(0)
    assert list(dict.fromkeys(counts))[:4] == [16, 32, 48, 64]
    cluster.run(10)
    assert len(followed_by(cluster, 2)) == 100


def test_partitions_are_spread_over_as_many_connections_as_the_settings_say(
    cluster: Cluster,
) -> None:
    cluster.create_topic("orders", 10)
    cluster.run(10)
    assert {purpose for _, _, purpose in cluster.peers.dialled} == {"replica-0"}
    cluster.change_metadata(lambda broker: broker.configure_broker(num_replica_fetchers="3"))
    cluster.run(10)
    purposes = {purpose for node_id, _, purpose in cluster.peers.dialled if node_id == 2}
    assert purposes == {"replica-0", "replica-1", "replica-2"}
    for index in range(10):
        cluster.brokers[1].append("orders", b"a", index=index, acks=1)
    cluster.run(50)
    assert [end_of(cluster, 2, index=index) for index in range(10)] == [1] * 10


def test_a_partition_that_cannot_be_opened_counts_as_failed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no such disk")

    follower = cluster.brokers[2]
    with monkeypatch.context() as patched:
        patched.setattr(type(follower.partitions), "get", fail)
        follower.create_topic("orders", replicas=(1, 2), leader=1)
    assert follower.fetchers.failed_count == 1
    follower.lead("orders", leader=1)
    assert follower.fetchers.failed_count == 0


def test_a_partition_whose_disk_failed_is_not_followed_in_another_epoch(cluster: Cluster) -> None:
    cluster.create_topic("orders")
    cluster.run(10)
    follower = cluster.brokers[2]
    follower.partitions.handle_log_dir_failure(follower.directories[0], OSError("it is broken"))
    follower.lead("orders", leader=1)
    assert followed_by(cluster, 2) == []
    assert follower.fetchers.failed_count == 1


def test_nothing_is_sent_after_the_stop(cluster: Cluster) -> None:
    cluster.create_topic("orders", 40)
    cluster.brokers[2].fetchers.stop()
    cluster.peers.sent.clear()
    cluster.run(2_000)
    assert cluster.peers.sent == []


def test_a_throttled_partition_stays_within_its_rate_until_it_is_in_sync(cluster: Cluster) -> None:
    cluster.change_metadata(
        lambda broker: broker.configure_broker(follower_replication_throttled_rate="1000")
    )
    cluster.create_topic("orders", isr=(1,))
    cluster.create_topic("payments", isr=(1,))
    cluster.change_metadata(
        lambda broker: broker.configure("orders", follower_replication_throttled_replicas="0:2")
    )
    for topic in ("orders", "payments"):
        for _ in range(20):
            cluster.brokers[1].append(topic, b"x" * 200_000, acks=1)
    cluster.run(5_000)
    assert end_of(cluster, 2, "payments") == 20
    assert 0 < end_of(cluster, 2, "orders") < 20
    fetches = [each for _, each in cluster.peers.sent if isinstance(each, FetchRequest)]
    assert any(fetch.forgotten_topics_data for fetch in fetches)
    cluster.change_metadata(
        lambda broker: broker.configure_broker(follower_replication_throttled_rate="1000000000")
    )
    cluster.run(1_000)
    assert end_of(cluster, 2, "orders") == 20
