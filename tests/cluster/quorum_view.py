"""The quorum as its leader describes it."""

from dataclasses import dataclass

from barnabas.testing.requests import REQUEST_TIMEOUT_S, Connect, connect, send_request
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)

QUORUM_VERSION = 2


@dataclass(slots=True, frozen=True)
class QuorumView:
    """A description of the quorum by its leader."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, int]
    """Log end offsets."""
    observers: dict[int, int]


def quorum_view(
    port: int, *, deadline_s: float = REQUEST_TIMEOUT_S, connect: Connect = connect
) -> QuorumView | None:
    """Sends DescribeQuorum to a broker or controller; returns None while there is no leader."""
    request = DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[RequestPartitionData(partition_index=0)],
            )
        ]
    )
    response = send_request(port, request, QUORUM_VERSION, timeout_s=deadline_s, connect=connect)
    if response.error_code or response.topics[0].partitions[0].error_code:
        return None
    partition = response.topics[0].partitions[0]
    return QuorumView(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        {
            current_voter.replica_id: current_voter.log_end_offset
            for current_voter in partition.current_voters
        },
        {observer.replica_id: observer.log_end_offset for observer in partition.observers},
    )
