"""The whole cluster at a glance: its brokers, its controllers, what is wrong with its data."""

from dataclasses import dataclass

from barnabas.cli.work.quorum import Quorum, try_describe_quorum
from barnabas.cli.work.topics import Partition, describe_topics, topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import Node

LEADERLESS = "no leader"
BELOW = "below min.insync.replicas"
SHORT = "under-replicated"
TROUBLES = (LEADERLESS, BELOW, SHORT)
"""What can be wrong with a partition, the worst first."""


@dataclass(slots=True, frozen=True)
class Overview:
    cluster_id: str | None
    brokers: list[Node]
    fenced: frozenset[int]
    partitions: list[Partition]
    quorum: Quorum | None
    """None while no controller is active."""


async def look_over(admin: AioAdminClient) -> Overview:
    """The quorum is asked for last: it may have nobody to answer for it."""
    cluster = await admin.describe_cluster(include_fenced_brokers=True)
    topics = await describe_topics(admin, await topic_names(admin), with_moves=False)
    return Overview(
        cluster.cluster_id,
        sorted(cluster.nodes, key=lambda node: node.id),
        frozenset(cluster.fenced),
        [partition for topic in topics for partition in topic.partitions],
        await try_describe_quorum(admin),
    )


def trouble_of(partition: Partition) -> str | None:
    in_sync, replicas = len(partition.state.isr), len(partition.state.replicas)
    if partition.is_leaderless:
        return LEADERLESS
    if in_sync < min(partition.needed, replicas):
        return BELOW
    return SHORT if in_sync < replicas else None
