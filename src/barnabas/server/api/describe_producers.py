"""DescribeProducers (key 61): the active producers of partitions, and their transactions."""

from barnabas.controller.topic_names import validate_topic_name
from barnabas.security.authorizer.model import AclOperation, topic_resource
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(topic.name, index, context) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, context: RequestContext) -> PartitionResponse:
    try:
        validate_topic_name(topic)
        context.require_allowed(AclOperation.READ, topic_resource(topic))
        partition = context.broker.partitions.get_by_name(topic, index)
        producers = partition.log.active_producers()  # a follower has them as well
    except Exception as failure:
        code, message = error_of(failure, "DescribeProducers", context)
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
                current_txn_start_offset=producer.transaction_first_offset,
            )
            for producer in producers
        ],
    )
