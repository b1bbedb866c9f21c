"""DescribeProducers (key 61): the producers that a partition remembers, and their transactions."""

from barnabas.controller.topic_names import require_valid
from barnabas.server.errors import failure_of
from barnabas.server.request_context import Call
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(request: DescribeProducersRequest, call: Call) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(topic.name, index, call) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, call: Call) -> PartitionResponse:
    try:
        require_valid(topic)
        partition = call.broker.partitions.by_name(topic, index)
        producers = partition.log.active_producers()  # a follower knows them as well
    except Exception as failure:
        code, message = failure_of(failure, "DescribeProducers", call)
        return PartitionResponse(partition_index=index, error_code=code, error_message=message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.transaction_start,
            )
            for producer in producers
        ],
    )
