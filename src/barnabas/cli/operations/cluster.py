"""An overview of the cluster: its brokers, metadata quorum, partitions and log directories."""

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.cli.operations.quorum import QuorumStatus, try_describe_quorum
from barnabas.cli.operations.topics import PartitionDetails, describe_topics, topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.client.admin.model import Node

OFFLINE = "offline"
UNDER_MIN_ISR = "under min.insync.replicas"
UNDER_REPLICATED = "under-replicated"
PARTITION_PROBLEMS = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)
"""Problems of a partition, the worst first."""


@dataclass(slots=True, frozen=True)
class ClusterOverview:
    cluster_id: str | None
    brokers: list[Node]
    fenced: frozenset[int]
    partitions: list[PartitionDetails]
    quorum: QuorumStatus | None
    """None while no controller is active."""


async def describe_cluster(admin: AioAdminClient) -> ClusterOverview:
    """Describes the cluster. The quorum comes last: it times out without an active controller."""
    cluster = await admin.describe_cluster(include_fenced_brokers=True)
    topics = await describe_topics(admin, await topic_names(admin), with_reassignments=False)
    return ClusterOverview(
        cluster.cluster_id,
        sorted(cluster.nodes, key=lambda node: node.id),
        frozenset(cluster.fenced),
        [partition for topic in topics for partition in topic.partitions],
        await try_describe_quorum(admin),
    )


def problem_of(partition: PartitionDetails) -> str | None:
    in_sync, replicas = len(partition.state.isr), len(partition.state.replicas)
    if partition.is_offline:
        return OFFLINE
    if in_sync < min(partition.min_in_sync_replicas, replicas):
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if in_sync < replicas else None


async def live_broker_ids(admin: AioAdminClient) -> list[int]:
    return sorted(node.id for node in (await admin.describe_cluster()).nodes)


async def describe_log_dirs(
    admin: AioAdminClient, brokers: Sequence[int]
) -> dict[int, dict[str, LogDirDescription]]:
    """Returns the log directories by broker and path."""
    return (await admin.describe_log_dirs(list(brokers))).all()
