"""Committed offsets of groups: list, alter, delete."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from barnabas.client.admin.model import ConsumerGroupTopicPartitions, by_topic
from barnabas.client.admin.requests import (
    UNSET,
    AdminRequests,
    one_request_per_item,
    require_list,
    require_partitions,
)
from barnabas.client.admin.results import Results
from barnabas.client.cluster import CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import OFFSET_INVALID, TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)
from barnabas.wire.schema import Message

_LAST_VERSION_WITH_NAMES = 9
"""Later versions of OffsetFetch and OffsetCommit have topic ids instead of names (KIP-848)."""

_COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of the coordinator, which every partition of a response repeats."""

GroupResults = Results[str, ConsumerGroupTopicPartitions]


def list_consumer_group_offsets(
    admin: AdminRequests,
    list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
    *,
    require_stable: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, GroupResults]:
    """Returns the committed offsets of groups, by group id.

    A group without `topic_partitions` stands for all partitions with a committed offset. With
    `require_stable`, the call waits for offsets that a transaction has not committed yet.
    """
    groups = _checked(list_consumer_group_offsets_request)
    for group in groups.values():
        if any(partition.offset != OFFSET_INVALID for partition in group.topic_partitions or ()):
            raise ValueError("partitions whose offsets are listed must not have an offset")
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[str]
    ) -> Mapping[str, ConsumerGroupTopicPartitions | KafkaError]:
        request = OffsetFetchRequest(
            groups=[_fetch_request(groups[group_id]) for group_id in batch],
            require_stable=require_stable,
        )
        response = await admin.send(
            request, node, deadline=deadline, max_version=_LAST_VERSION_WITH_NAMES
        )
        return {group.group_id: _committed_offsets(group) for group in response.groups}

    return admin.route_to_coordinators(CoordinatorType.GROUP, groups, exchange, deadline)


def alter_consumer_group_offsets(
    admin: AdminRequests,
    alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, GroupResults]:
    """Commits offsets for groups that have no members, by group id.

    Each partition of the result has its own `error`.
    """
    groups = _checked(alter_consumer_group_offsets_request, partitions_needed=True)
    for group in groups.values():
        if any(partition.offset < 0 for partition in group.topic_partitions or ()):
            raise ValueError("an offset to commit must not be negative")
    deadline = admin.deadline(request_timeout)
    return _send_by_group(
        admin, groups, _commit_request, deadline, max_version=_LAST_VERSION_WITH_NAMES
    )


def delete_consumer_group_offsets(
    admin: AdminRequests,
    delete_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, GroupResults]:
    """Deletes committed offsets of partitions that the group is not subscribed to.

    Results are by group id; each partition of a result has its own `error`.
    """
    groups = _checked(delete_consumer_group_offsets_request, partitions_needed=True)
    return _send_by_group(admin, groups, _delete_request, admin.deadline(request_timeout))


def _send_by_group(
    admin: AdminRequests,
    groups: dict[str, ConsumerGroupTopicPartitions],
    request_for: Callable[[ConsumerGroupTopicPartitions], Message],
    deadline: Deadline,
    max_version: int | None = None,
) -> Coroutine[Any, Any, GroupResults]:
    """Sends the requests of an API that is about one group."""

    async def change(node: int | None, group_id: str) -> ConsumerGroupTopicPartitions | KafkaError:
        request = request_for(groups[group_id])
        response = await admin.send(request, node, deadline=deadline, max_version=max_version)
        return _with_errors(groups[group_id], response)

    return admin.route_to_coordinators(
        CoordinatorType.GROUP, groups, one_request_per_item(change), deadline
    )


def _checked(
    request: list[ConsumerGroupTopicPartitions], *, partitions_needed: bool = False
) -> dict[str, ConsumerGroupTopicPartitions]:
    """Returns groups by id. Raises TypeError or ValueError if a group is invalid."""
    require_list("request", request, ConsumerGroupTopicPartitions)
    for group in request:
        if not isinstance(group.group_id, str):
            raise TypeError(f"the group id {group.group_id!r} is not a string")
        if not group.group_id:
            raise ValueError("a group id must not be empty")
        partitions = group.topic_partitions
        if partitions is None and not partitions_needed:
            continue
        require_partitions("topic_partitions", partitions)
    return {group.group_id: group for group in request}


def _fetch_request(group: ConsumerGroupTopicPartitions) -> OffsetFetchRequestGroup:
    topics = None
    if group.topic_partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=[p.partition for p in of_topic])
            for topic, of_topic in by_topic(group.topic_partitions).items()
        ]
    return OffsetFetchRequestGroup(group_id=group.group_id, topics=topics)


def _committed_offsets(
    group: OffsetFetchResponseGroup,
) -> ConsumerGroupTopicPartitions | KafkaError:
    if group.error_code:
        return broker_error(group.error_code)
    offsets: list[TopicPartition] = []
    for topic in group.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                return broker_error(partition.error_code)
            offsets.append(_committed_offset(topic.name, partition))
    return ConsumerGroupTopicPartitions(group.group_id, sorted(offsets))


def _committed_offset(topic: str, response: OffsetFetchResponsePartitions) -> TopicPartition:
    has_committed = response.committed_offset >= 0
    partition = TopicPartition(
        topic,
        response.partition_index,
        response.committed_offset if has_committed else OFFSET_INVALID,
        response.metadata or None,
        response.committed_leader_epoch if response.committed_leader_epoch >= 0 else None,
    )
    if response.error_code:
        partition.error = broker_error(response.error_code)
    return partition


def _commit_request(group: ConsumerGroupTopicPartitions) -> Message:
    return OffsetCommitRequest(
        group_id=group.group_id,
        topics=[
            OffsetCommitRequestTopic(name=topic, partitions=[_committable(p) for p in of_topic])
            for topic, of_topic in by_topic(group.topic_partitions or ()).items()
        ],
    )


def _committable(partition: TopicPartition) -> OffsetCommitRequestPartition:
    epoch = partition.leader_epoch
    return OffsetCommitRequestPartition(
        partition_index=partition.partition,
        committed_offset=partition.offset,
        committed_leader_epoch=-1 if epoch is None else epoch,
        committed_metadata=partition.metadata or "",
    )


def _delete_request(group: ConsumerGroupTopicPartitions) -> Message:
    return OffsetDeleteRequest(
        group_id=group.group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[
                    OffsetDeleteRequestPartition(partition_index=p.partition) for p in of_topic
                ],
            )
            for topic, of_topic in by_topic(group.topic_partitions or ()).items()
        ],
    )


def _with_errors(
    group: ConsumerGroupTopicPartitions, response: Any
) -> ConsumerGroupTopicPartitions | KafkaError:
    """Returns the requested partitions with their errors."""
    if code := getattr(response, "error_code", 0):
        return broker_error(code)
    codes = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    if code := next((code for code in codes.values() if code in _COORDINATOR_ERRORS), 0):
        return broker_error(code)
    changed: list[TopicPartition] = []
    for requested in sorted(group.topic_partitions or ()):
        partition = TopicPartition(
            requested.topic,
            requested.partition,
            requested.offset,
            requested.metadata,
            requested.leader_epoch,
        )
        if code := codes.get(requested, ErrorCode.UNKNOWN_SERVER_ERROR):
            partition.error = broker_error(code)
        changed.append(partition)
    return ConsumerGroupTopicPartitions(group.group_id, changed)
