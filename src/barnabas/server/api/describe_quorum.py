"""DescribeQuorum (key 55): who leads the metadata log, and how far every replica of it has come.

v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages.
"""

from barnabas.raft import QuorumDescription
from barnabas.server.call import Call
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)

METADATA_TOPIC = "__cluster_metadata"


async def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    quorum = call.broker.controller.quorum.describe()
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    _partition(topic.topic_name, partition.partition_index, quorum, call.now_ms)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        nodes=[
            Node(
                node_id=voter.node_id,
                listeners=[
                    Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                    for endpoint in voter.endpoints
                ],
            )
            for voter in quorum.voters
        ],
    )


def _partition(
    topic: str, index: int, quorum: QuorumDescription, now_ms: int
) -> ResponsePartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return ResponsePartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"The quorum keeps {METADATA_TOPIC}-0 only.",
        )
    return ResponsePartitionData(
        partition_index=index,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter.node_id,
                replica_directory_id=voter.directory_id,
                log_end_offset=quorum.end_offset,
                last_fetch_timestamp=now_ms,
                last_caught_up_timestamp=now_ms,
            )
            for voter in quorum.voters
        ],
    )
