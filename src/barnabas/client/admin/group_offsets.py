"""Offsets that groups have committed: list, alter, delete."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, require_list, require_partitions
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.admin.routes import Exchange, one_by_one, topics_of
from barnabas.client.cluster import Coordinator, Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.values import OFFSET_INVALID, TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
)
from barnabas.wire.schema import Message

_LAST_WITH_NAMES = 9
"""Later versions of OffsetFetch and OffsetCommit know topics by their ids alone (KIP-848)."""

_OF_THE_GROUP = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors that partitions bear although they are the whole answer's."""

Groups = Results[str, ConsumerGroupTopicPartitions]


class GroupOffsetCalls(Calls):
    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        require_stable: bool = False,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Groups]:
        """What groups have committed, for some partitions or for all that they have.

        With `require_stable`, offsets in a transaction that is still open are waited for.
        """
        groups = _checked(list_consumer_group_offsets_request)
        for group in groups.values():
            if any(each.offset != OFFSET_INVALID for each in group.topic_partitions or ()):
                raise ValueError("offsets are to be listed: none may be given")
        deadline = self._deadline(request_timeout)
        return self._list_offsets_of(groups, require_stable, deadline)

    async def _list_offsets_of(
        self,
        groups: dict[str, ConsumerGroupTopicPartitions],
        require_stable: bool,
        deadline: Deadline,
    ) -> Groups:
        async def exchange(
            node: int | None, asked: list[str]
        ) -> Mapping[str, ConsumerGroupTopicPartitions | KafkaError]:
            request = OffsetFetchRequest(
                groups=[_fetched(groups[group_id]) for group_id in asked],
                require_stable=require_stable,
            )
            response = await self._routes.ask(
                request, node, deadline=deadline, newest_version=_LAST_WITH_NAMES
            )
            return {group.group_id: _committed(group) for group in response.groups}

        return await self._by_coordinator(groups, exchange, deadline)

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Groups]:
        """Commit offsets for groups that have no members; each partition has its own `error`."""
        groups = _checked(alter_consumer_group_offsets_request, partitions_needed=True)
        for group in groups.values():
            if any(each.offset < 0 for each in group.topic_partitions or ()):
                raise ValueError("an offset to commit must not be negative")
        deadline = self._deadline(request_timeout)
        return self._change(groups, _commit, deadline, newest_version=_LAST_WITH_NAMES)

    def delete_consumer_group_offsets(
        self,
        delete_consumer_group_offsets_request: list[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Groups]:
        """Forget what groups have committed for partitions that they are not subscribed to.

        Each partition has its own `error`.
        """
        groups = _checked(delete_consumer_group_offsets_request, partitions_needed=True)
        return self._change(groups, _delete, self._deadline(request_timeout))

    async def _change(
        self,
        groups: dict[str, ConsumerGroupTopicPartitions],
        request_for: Callable[[ConsumerGroupTopicPartitions], Message],
        deadline: Deadline,
        newest_version: int | None = None,
    ) -> Groups:
        """Requests that are about one group each."""

        async def change(
            node: int | None, group_id: str
        ) -> ConsumerGroupTopicPartitions | KafkaError:
            response = await self._routes.ask(
                request_for(groups[group_id]),
                node,
                deadline=deadline,
                newest_version=newest_version,
            )
            return _changed(groups[group_id], response)

        return await self._by_coordinator(groups, one_by_one(change), deadline)

    async def _by_coordinator(
        self,
        groups: Iterable[str],
        exchange: Exchange[str, ConsumerGroupTopicPartitions],
        deadline: Deadline,
    ) -> Groups:
        return Results(
            await self._routes.by_coordinator(Coordinator.GROUP, groups, exchange, deadline)
        )


def _checked(
    request: list[ConsumerGroupTopicPartitions], *, partitions_needed: bool = False
) -> dict[str, ConsumerGroupTopicPartitions]:
    """Groups by their ids, if all is as it should be."""
    require_list("request", request, ConsumerGroupTopicPartitions)
    for group in request:
        if not isinstance(group.group_id, str):
            raise TypeError(f"{group.group_id!r} is no id of a group")
        if not group.group_id:
            raise ValueError("the id of a group must not be empty")
        partitions = group.topic_partitions
        if partitions is None and not partitions_needed:
            continue
        require_partitions("topic_partitions", partitions)
    return {group.group_id: group for group in request}


def _fetched(group: ConsumerGroupTopicPartitions) -> OffsetFetchRequestGroup:
    topics = None
    if group.topic_partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in _topics(group).items()
        ]
    return OffsetFetchRequestGroup(group_id=group.group_id, topics=topics)


def _committed(group: OffsetFetchResponseGroup) -> ConsumerGroupTopicPartitions | KafkaError:
    if group.error_code:
        return told_by_broker(group.error_code)
    offsets: list[TopicPartition] = []
    for topic in group.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                return told_by_broker(partition.error_code)
            offsets.append(_offset(topic.name, partition))
    return ConsumerGroupTopicPartitions(group.group_id, sorted(offsets))


def _offset(topic: str, told: OffsetFetchResponsePartitions) -> TopicPartition:
    has_committed = told.committed_offset >= 0
    partition = TopicPartition(
        topic,
        told.partition_index,
        told.committed_offset if has_committed else OFFSET_INVALID,
        told.metadata or None,
        told.committed_leader_epoch if told.committed_leader_epoch >= 0 else None,
    )
    if told.error_code:
        partition.error = told_by_broker(told.error_code)
    return partition


def _commit(group: ConsumerGroupTopicPartitions) -> Message:
    offsets = {(each.topic, each.partition): each for each in group.topic_partitions or ()}
    return OffsetCommitRequest(
        group_id=group.group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[_committable(offsets[topic, index]) for index in indexes],
            )
            for topic, indexes in _topics(group).items()
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


def _delete(group: ConsumerGroupTopicPartitions) -> Message:
    return OffsetDeleteRequest(
        group_id=group.group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=i) for i in indexes],
            )
            for topic, indexes in _topics(group).items()
        ],
    )


def _changed(
    group: ConsumerGroupTopicPartitions, response: Any
) -> ConsumerGroupTopicPartitions | KafkaError:
    """The partitions as they were given, each with what became of it."""
    if code := getattr(response, "error_code", 0):
        return told_by_broker(code)
    codes = {
        (topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    }
    if code := next((code for code in codes.values() if code in _OF_THE_GROUP), 0):
        return told_by_broker(code)
    changed: list[TopicPartition] = []
    for given in sorted(group.topic_partitions or ()):
        partition = TopicPartition(
            given.topic, given.partition, given.offset, given.metadata, given.leader_epoch
        )
        if code := codes.get((given.topic, given.partition), ErrorCode.UNKNOWN_SERVER_ERROR):
            partition.error = told_by_broker(code)
        changed.append(partition)
    return ConsumerGroupTopicPartitions(group.group_id, changed)


def _topics(group: ConsumerGroupTopicPartitions) -> dict[str, list[int]]:
    return topics_of((each.topic, each.partition) for each in group.topic_partitions or ())
