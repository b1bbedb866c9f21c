"""Committing the offsets of a group, and fetching those it has committed.

Both name topics by id as well as by name: which of the two travels is for the version to say
(from v10 on it is the id).
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from barnabas.client.cluster import Backoff, Cluster, Coordinator, Deadline
from barnabas.client.consumer.group.partitions import by_topic
from barnabas.client.consumer.group.refusals import passes
from barnabas.client.errors import KafkaError, KafkaException, fail, told_by_broker
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import OFFSET_INVALID, ConsumerGroupMetadata, Partition, TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
)
from barnabas.wire.uuid import ZERO

NOBODY = -1
"""The generation or epoch of one who commits without being a member."""


class Offsets:
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
        self, offsets: Mapping[Partition, TopicPartition], deadline: Deadline
    ) -> dict[Partition, KafkaError | None]:
        outcomes: dict[Partition, int] = {}
        waiting = dict(offsets)
        pauses = self._pauses()
        while waiting:
            ids = await self._topic_ids({topic for topic, _ in waiting}, deadline)
            unknown = dict.fromkeys(waiting, int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            outcomes |= unknown | await self._commit(waiting, ids, deadline)
            waiting = {each: offsets[each] for each in waiting if self._may_pass(outcomes[each])}
            if not waiting or not await _paused(pauses, deadline):
                break
        return {each: told_by_broker(code) if code else None for each, code in outcomes.items()}

    async def committed(
        self, partitions: Collection[Partition], deadline: Deadline
    ) -> dict[Partition, TopicPartition]:
        """Waits for offsets whose transaction is open, if only what is committed is to be read."""
        outcomes: dict[Partition, TopicPartition] = {}
        waiting = set(partitions)
        pauses = self._pauses()
        while waiting:
            ids = await self._topic_ids({topic for topic, _ in waiting}, deadline)
            outcomes |= {each: TopicPartition(*each) for each in waiting}
            for position in await self._fetch(waiting, ids, deadline):
                outcomes[position.topic, position.partition] = position
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
                return self._identity().generation_id != NOBODY
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
        self, offsets: Mapping[Partition, TopicPartition], ids: Mapping[str, bytes], by: Deadline
    ) -> dict[Partition, int]:
        """What became of each partition; those of topics without an id are left out."""
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=ids[topic],
                partitions=[_to_commit(offsets[topic, index]) for index in indexes],
            )
            for topic, indexes in by_topic(offsets).items()
            if topic in ids
        ]
        if not topics:
            return {}

        def request() -> OffsetCommitRequest:
            me = self._identity()
            if me.generation_id == NOBODY:
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
            return next((code for code in codes if passes(told_by_broker(code))), 0)

        response: OffsetCommitResponse = await self._cluster.ask_coordinator(
            Coordinator.GROUP, self._group_id, request, error_of, deadline=by
        )
        names = {topic_id: topic for topic, topic_id in ids.items()}
        return {
            (topic.name or names[topic.topic_id], each.partition_index): each.error_code
            for topic in response.topics
            for each in topic.partitions
        }

    async def _fetch(
        self, partitions: Iterable[Partition], ids: Mapping[str, bytes], by: Deadline
    ) -> list[TopicPartition]:
        topics = [
            OffsetFetchRequestTopics(name=topic, topic_id=ids[topic], partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
            if topic in ids
        ]
        if not topics:
            return []

        def request() -> OffsetFetchRequest:
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
            if self._settings.group_protocol == "consumer":
                me = self._identity()
                if me.generation_id != NOBODY:
                    group.member_id, group.member_epoch = me.member_id, me.generation_id
            must_be_stable = self._settings.isolation_level == "read_committed"
            return OffsetFetchRequest(groups=[group], require_stable=must_be_stable)

        response: OffsetFetchResponse = await self._cluster.ask_coordinator(
            Coordinator.GROUP,
            self._group_id,
            request,
            lambda response: response.groups[0].error_code,
            deadline=by,
        )
        (group,) = response.groups
        if group.error_code == ErrorCode.STALE_MEMBER_EPOCH:
            return [_failed(each, group.error_code) for each in partitions]
        if group.error_code:
            raise KafkaException(told_by_broker(group.error_code))
        names = {topic_id: topic for topic, topic_id in ids.items()}
        return [
            _position(topic.name or names[topic.topic_id], each)
            for topic in group.topics
            for each in topic.partitions
        ]

    async def _topic_ids(self, topics: Collection[str], deadline: Deadline) -> dict[str, bytes]:
        """The ids of the topics that exist."""
        known = self._cluster.metadata.topics
        ids = {name: known[name].topic_id for name in topics if name in known}
        ids = {name: topic_id for name, topic_id in ids.items() if topic_id != ZERO}
        missing = [name for name in topics if name not in ids]
        if missing:
            answer = await self._cluster.describe(missing, timeout_ms=deadline.left_ms())
            for topic in answer.topics:
                if topic.name is not None and not topic.error_code:
                    ids[topic.name] = topic.topic_id
        return ids


def _failed(partition: Partition, code: int) -> TopicPartition:
    position = TopicPartition(*partition)
    position.error = told_by_broker(code)
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
        position.error = told_by_broker(told.error_code)
    return position


async def _paused(pauses: Backoff, deadline: Deadline) -> bool:
    """Wait before the next attempt; False if there is no time for one."""
    pause_ms = pauses.next_ms()
    if pause_ms >= deadline.left_ms():
        return False
    await asyncio.sleep(pause_ms / 1000)
    return True
