"""Replicas of a compacted log: one that was down while it was cleaned, and one that is new."""

from functools import partial
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.keyed_records import FAST_CLEANING, KeyedWriter, is_cleaned
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.wait import wait_until

from barnabas import TopicPartition
from barnabas.admin import AdminClient

pytestmark = pytest.mark.timeout(240)

TOPIC = "prices"
RECORDS = 600
CONFIG = {name.replace(".", "_"): value for name, value in FAST_CLEANING.items()} | {
    # A replica that is down for longer may never see a tombstone, with Kafka too.
    "delete_retention_ms": "3600000"
}
SETTINGS = {"log.cleaner.backoff.ms": "100", "min.insync.replicas": "1"}


@pytest.mark.parametrize(
    "programs",
    [
        pytest.param((BARNABAS, BARNABAS, BARNABAS), id="barnabas"),
        pytest.param((BARNABAS, KAFKA, BARNABAS), id="mixed", marks=pytest.mark.peer),
    ],
)
def test_replicas_copy_what_is_left_of_a_cleaned_log(
    programs: tuple[NodeProgram, ...], tmp_path: Path
) -> None:
    with Cluster.combined(tmp_path, programs, settings=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, 1, replication_factor=2, **CONFIG)
        writer = KeyedWriter(TOPIC)
        leader, follower, other = by_role(cluster)
        write_and_clean(cluster, writer, leader)

        cluster.kill_node(follower)
        write_and_clean(cluster, writer, leader)
        cluster.start_node(follower)
        cluster.wait_until_in_sync()
        cluster.stop_node(leader)
        wait_until(lambda: cluster.leader_of(TOPIC) is follower, "the follower leads")
        write_and_clean(cluster, writer, follower)

        reassign(cluster, other)
        wait_until(lambda: cluster.leader_of(TOPIC) is other, "the new replica leads")
        write_and_clean(cluster, writer, other)


def by_role(cluster: Cluster) -> tuple[ProcessNode, ...]:
    """Returns the leader, the follower, and the broker without a replica."""
    metadata = cluster.metadata()
    assert metadata is not None
    leader, replica_ids = cluster.leader_of(TOPIC), metadata.partitions[TOPIC, 0].replicas
    nodes = cluster.nodes.values()
    return tuple(
        sorted(nodes, key=lambda node: (node is not leader, node.node_id not in replica_ids))
    )


def write_and_clean(cluster: Cluster, writer: KeyedWriter, leader: ProcessNode) -> None:
    """The leader has what was left before, and it cleans what is written now."""
    writer.check(cluster.bootstrap_servers)
    writer.write(cluster.bootstrap_servers, RECORDS)
    wait_until(partial(is_cleaned, leader.log_dir, TOPIC), "the log is cleaned")
    assert writer.check(cluster.bootstrap_servers) < RECORDS / 2


def reassign(cluster: Cluster, node: ProcessNode) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    plan = {TopicPartition(TOPIC, 0): [node.node_id]}
    for altered in admin.alter_partition_reassignments(plan).values():
        altered.result(30)
