"""What a node says of the quorum."""

from dataclasses import dataclass

from barnabas.testing.requests import REQUEST_TIMEOUT_S, send_request
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)

QUORUM_VERSION = 2


@dataclass(slots=True, frozen=True)
class QuorumView:
    """The quorum as its leader sees it."""

    leader: int
    epoch: int
    high_watermark: int
    voters: dict[int, int]
    """Log end offsets."""
    observers: dict[int, int]


def quorum_view(port: int, *, deadline_s: float = REQUEST_TIMEOUT_S) -> QuorumView | None:
    """What a broker or a controller says; None while there is no leader to ask."""
    asked = DescribeQuorumRequest(
        topics=[
            RequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[RequestPartitionData(partition_index=0)],
            )
        ]
    )
    answer = send_request(port, asked, QUORUM_VERSION, timeout_s=deadline_s)
    if answer.error_code or answer.topics[0].partitions[0].error_code:
        return None
    found = answer.topics[0].partitions[0]
    return QuorumView(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        {each.replica_id: each.log_end_offset for each in found.current_voters},
        {each.replica_id: each.log_end_offset for each in found.observers},
    )
