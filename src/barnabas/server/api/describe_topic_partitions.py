"""DescribeTopicPartitions (key 75): partitions page by page, with eligible leaders (KIP-966)."""

from barnabas.controller.topic_names import is_valid_topic_name
from barnabas.metadata.states import PartitionRegistration, TopicImage
from barnabas.security.authorizer.model import topic_resource
from barnabas.server.authorization import is_describable
from barnabas.server.cluster_view import ListenerView, is_internal
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
    names, denied = _names(request, context)
    response = DescribeTopicPartitionsResponse(topics=[_denied(name) for name in denied])
    for name in names:
        topic = context.broker.image.topics.by_name(name)
        if not remaining:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        if topic is None:
            response.topics.append(_missing(name, context))
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        indexes = [index for index in sorted(topic.partitions) if index >= first]
        response.topics.append(_describe(topic, indexes[:remaining], view, context))
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


def _names(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> tuple[list[str], list[str]]:
    """Returns the requested topics, or all, in the order of their names, from the cursor on.

    Those that the client may not describe are returned separately if it requested them by name,
    and left out of all topics.
    """
    first = request.cursor.topic_name if request.cursor else ""
    requested = {topic.name for topic in request.topics if topic.name >= first}
    names = requested
    if not request.topics:
        names = {topic.name for topic in context.broker.image.topics if topic.name >= first}
    describable = {
        name for name in names if is_describable(name, context, is_audited=bool(requested))
    }
    return sorted(describable), sorted(requested - describable)


def _denied(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, is_internal=is_internal(name)
    )


def _missing(name: str, context: RequestContext) -> DescribeTopicPartitionsResponseTopic:
    error = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_valid_topic_name(name)
        else ErrorCode.INVALID_TOPIC_EXCEPTION
    )
    return DescribeTopicPartitionsResponseTopic(
        error_code=error,
        name=name,
        topic_authorized_operations=context.allowed_operations(topic_resource(name)),
    )


def _describe(
    topic: TopicImage, indexes: list[int], view: ListenerView, context: RequestContext
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(index, topic.partitions[index], view) for index in indexes],
        topic_authorized_operations=context.allowed_operations(topic_resource(topic.name)),
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
