"""DescribeQuorum (key 55): who leads the metadata log, and how far every replica of it has come.

v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages.
"""

from barnabas.raft import METADATA_TOPIC, QuorumDescription
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
from barnabas.wire.uuid import ZERO

FIRST_VERSION_WITH_DIRECTORIES = 2


async def handle(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    quorum = call.broker.controller.quorum.describe()
    with_directories = call.api_version >= FIRST_VERSION_WITH_DIRECTORIES
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    _partition(topic.topic_name, partition.partition_index, quorum, call)
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
        ]
        if with_directories
        else [],
    )


def _partition(
    topic: str, index: int, quorum: QuorumDescription, call: Call
) -> ResponsePartitionData:
    if (topic, index) != (METADATA_TOPIC, 0):
        return ResponsePartitionData(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"The quorum keeps {METADATA_TOPIC}-0 only.",
        )
    with_directories = call.api_version >= FIRST_VERSION_WITH_DIRECTORIES
    return ResponsePartitionData(
        partition_index=index,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[
            ReplicaState(
                replica_id=voter.node_id,
                replica_directory_id=voter.directory_id if with_directories else ZERO,
                log_end_offset=quorum.end_offset,
                last_fetch_timestamp=call.now_ms,
                last_caught_up_timestamp=call.now_ms,
            )
            for voter in quorum.voters
        ],
    )
