"""Committing the offsets of a group, and fetching those it has committed.

From v10 on both name topics by id. A topic whose id is not known is named as versions before that
did, and then all in the same request are.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from barnabas.client.cluster import Backoff, Cluster, CoordinatorType, Deadline
from barnabas.client.consumer.group.errors import is_retriable
from barnabas.client.consumer.group.partitions import by_topic
from barnabas.client.errors import KafkaError, KafkaException, broker_error, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import (
    OFFSET_INVALID,
    ConsumerGroupMetadata,
    TopicPartition,
    TopicPartitionTuple,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import ZERO

LAST_VERSION_WITH_NAMES = 9
NOT_A_MEMBER = -1
"""The generation or epoch of one who commits without being a member."""


class GroupOffsets:
    """Of one group. `identity` tells who this consumer is in it at present."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        identity: Callable[[], ConsumerGroupMetadata],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._identity = identity

    async def commit(
        self, offsets: Mapping[TopicPartitionTuple, TopicPartition], deadline: Deadline
    ) -> dict[TopicPartitionTuple, KafkaError | None]:
        outcomes: dict[TopicPartitionTuple, int] = {}
        waiting = dict(offsets)
        pauses = self._pauses()
        while waiting:
            outcomes |= await self._commit(waiting, deadline)
            waiting = {each: offsets[each] for each in waiting if self._may_pass(outcomes[each])}
            if not waiting or not await _paused(pauses, deadline):
                break
        return {each: broker_error(code) if code else None for each, code in outcomes.items()}

    async def committed(
        self, partitions: Collection[TopicPartitionTuple], deadline: Deadline
    ) -> dict[TopicPartitionTuple, TopicPartition]:
        """Waits for offsets whose transaction is open, if only what is committed is to be read."""
        outcomes: dict[TopicPartitionTuple, TopicPartition] = {}
        waiting = set(partitions)
        pauses = self._pauses()
        while waiting:
            try:
                outcomes |= await self._fetch(waiting, deadline)
            except KafkaException as failure:
                if not outcomes or failure.args[0] != KafkaError._TIMED_OUT:
                    raise
                break  # what was told before says more than that no time is left
            waiting = {
                each
                for each in waiting
                if (error := outcomes[each].error) is not None and self._may_pass(error.code())
            }
            if not waiting or not await _paused(pauses, deadline):
                break
        return outcomes

    def _may_pass(self, code: int) -> bool:
        """Whether asking again may bring something else."""
        match code:
            case ErrorCode.STALE_MEMBER_EPOCH:
                # The next heartbeat brings the new epoch, unless this is no member any more.
                return self._identity().generation_id != NOT_A_MEMBER
            case ErrorCode.UNKNOWN_TOPIC_ID:
                self._cluster.refresh()
                return True
            case _:
                return code in (ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.REQUEST_TIMED_OUT)

    def _pauses(self) -> Backoff:
        return Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)

    @property
    def _group_id(self) -> str:
        if self._settings.group_id is None:
            fail(KafkaError._UNKNOWN_GROUP, "offsets belong to a group: set group.id")
        return self._settings.group_id

    # Asking

    async def _commit(
        self, offsets: Mapping[TopicPartitionTuple, TopicPartition], deadline: Deadline
    ) -> dict[TopicPartitionTuple, int]:
        """What became of each."""
        naming = self._naming(offsets)
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=naming.id(topic),
                partitions=[_to_commit(offsets[topic, index]) for index in indexes],
            )
            for topic, indexes in by_topic(offsets).items()
        ]

        def request() -> OffsetCommitRequest:
            me = self._identity()
            if me.generation_id == NOT_A_MEMBER:
                return OffsetCommitRequest(group_id=self._group_id, topics=topics)
            return OffsetCommitRequest(
                group_id=self._group_id,
                generation_id_or_member_epoch=me.generation_id,
                member_id=me.member_id,
                group_instance_id=me.group_instance_id,
                topics=topics,
            )

        def error_of(response: OffsetCommitResponse) -> int:
            codes = (each.error_code for topic in response.topics for each in topic.partitions)
            return next((code for code in codes if is_retriable(broker_error(code))), 0)

        response = await self._ask(request, error_of, naming, deadline)
        return {
            (naming.name(topic), each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }

    async def _fetch(
        self, partitions: Iterable[TopicPartitionTuple], deadline: Deadline
    ) -> dict[TopicPartitionTuple, TopicPartition]:
        naming = self._naming(partitions)
        topics = [
            OffsetFetchRequestTopics(
                name=topic, topic_id=naming.id(topic), partition_indexes=indexes
            )
            for topic, indexes in by_topic(partitions).items()
        ]

        def request() -> OffsetFetchRequest:
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
            me = self._identity()
            if self._settings.group_protocol == "consumer" and me.generation_id != NOT_A_MEMBER:
                group.member_id, group.member_epoch = me.member_id, me.generation_id
            must_be_stable = self._settings.isolation_level == "read_committed"
            return OffsetFetchRequest(groups=[group], require_stable=must_be_stable)

        response = await self._ask(request, lambda r: r.groups[0].error_code, naming, deadline)
        (group,) = response.groups
        if group.error_code == ErrorCode.STALE_MEMBER_EPOCH:
            return {each: _failed(each, group.error_code) for each in partitions}
        if group.error_code:
            raise KafkaException(broker_error(group.error_code))
        positions = (
            _position(naming.name(topic), each)
            for topic in group.topics
            for each in topic.partitions
        )
        return {(each.topic, each.partition): each for each in positions}

    async def _ask(
        self,
        request: Callable[[], Message],
        error_of: Callable[[Any], int],
        naming: "_Naming",
        deadline: Deadline,
    ) -> Any:
        return await self._cluster.send_to_coordinator(
            CoordinatorType.GROUP,
            self._group_id,
            request,
            error_of,
            deadline=deadline,
            max_version=None if naming.is_complete else LAST_VERSION_WITH_NAMES,
        )

    def _naming(self, partitions: Iterable[TopicPartitionTuple]) -> "_Naming":
        topics = self._cluster.metadata.topics
        named = {topic for topic, _ in partitions}
        return _Naming({name: topics[name].topic_id if name in topics else ZERO for name in named})


class _Naming:
    """The ids of some topics, and back."""

    def __init__(self, ids: Mapping[str, bytes]) -> None:
        self._ids = ids
        self._names = {topic_id: name for name, topic_id in ids.items()}

    @property
    def is_complete(self) -> bool:
        return ZERO not in self._names

    def id(self, name: str) -> bytes:
        return self._ids[name]

    def name(self, topic: OffsetCommitResponseTopic | OffsetFetchResponseTopics) -> str:
        """Of what the response names in one way or the other."""
        return topic.name or self._names[topic.topic_id]


def _failed(partition: TopicPartitionTuple, code: int) -> TopicPartition:
    position = TopicPartition(*partition)
    position.error = broker_error(code)
    return position


def _to_commit(offset: TopicPartition) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=offset.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata or "",
    )


def _position(topic: str, told: OffsetFetchResponsePartitions) -> TopicPartition:
    position = TopicPartition(
        topic,
        told.partition_index,
        told.committed_offset if told.committed_offset >= 0 else OFFSET_INVALID,
        told.metadata or None,
        told.committed_leader_epoch if told.committed_leader_epoch >= 0 else None,
    )
    if told.error_code:
        position.error = broker_error(told.error_code)
    return position


async def _paused(pauses: Backoff, deadline: Deadline) -> bool:
    """Wait before the next attempt; False if there is no time for one."""
    pause_ms = pauses.next_ms()
    if pause_ms >= deadline.remaining_ms():
        return False
    await asyncio.sleep(pause_ms / 1000)
    return True
