"""DescribeTopicPartitions (key 75): partitions page by page, with eligible leaders (KIP-966)."""

from collections.abc import Iterator

from barnabas.controller.topic_names import is_valid_topic_name
from barnabas.metadata.states import PartitionRegistration, TopicImage
from barnabas.server.cluster_view import TOPIC_OPERATIONS, ListenerView, is_internal
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


async def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    _require_valid_cursor(request)
    cursor = request.cursor
    view = ListenerView(context)
    remaining = _page_size(request, context)
    response = DescribeTopicPartitionsResponse()
    for name, topic in _topics(request, context):
        if not remaining:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        if topic is None:
            response.topics.append(_missing(name))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        response.topics.append(_describe(topic, indexes[:remaining], view))
        if len(indexes) > remaining:
            response.next_cursor = Cursor(topic_name=name, partition_index=indexes[remaining])
            break
        remaining -= len(indexes)
    return response


def _require_valid_cursor(request: DescribeTopicPartitionsRequest) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if cursor.partition_index < 0:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The cursor's partition must not be negative: {cursor.partition_index}.",
        )
    if request.topics and all(topic.name != cursor.topic_name for topic in request.topics):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The cursor's topic '{cursor.topic_name}' is not among the requested topics.",
        )


def _page_size(request: DescribeTopicPartitionsRequest, context: RequestContext) -> int:
    limit: int = context.broker.settings["max.request.partition.size.limit"]
    return max(min(limit, request.response_partition_limit), 1)


def _topics(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> Iterator[tuple[str, TopicImage | None]]:
    """Returns the requested topics, or all, in the order of their names, from the cursor on."""
    topics = context.broker.image.topics
    names = {topic.name for topic in request.topics} or {topic.name for topic in topics}
    first = request.cursor.topic_name if request.cursor else ""
    for name in sorted(names):
        if name >= first:
            yield name, topics.by_name(name)


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid_topic_name(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return DescribeTopicPartitionsResponseTopic(
        error_code=error, name=name, topic_authorized_operations=TOPIC_OPERATIONS
    )


def _describe(
    topic: TopicImage, indexes: list[int], view: ListenerView
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic),
        partitions=[_partition(index, topic.partitions[index], view) for index in indexes],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    index: int, partition: PartitionRegistration, view: ListenerView
) -> DescribeTopicPartitionsResponsePartition:
    _, leader, offline = view.partition(partition)
    return DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline,
    )
