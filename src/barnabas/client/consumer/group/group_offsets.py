"""Commits the offsets of a group, and fetches its committed offsets.

From version 10 on both APIs have topic ids. If the id of a topic is unknown, the whole request
uses an older version with topic names.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from barnabas.client.cluster import Backoff, ClusterClient, CoordinatorType, Deadline
from barnabas.client.consumer.group.membership import is_retriable
from barnabas.client.errors import KafkaError, KafkaException, broker_error, fail
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import (
    OFFSET_INVALID,
    ConsumerGroupMetadata,
    PartitionKey,
    TopicPartition,
    group_by_topic,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
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
"""The generation or epoch of a commit by a consumer that is not a member."""


class GroupOffsets:
    """The offsets of one group; `identity` returns the current member id and epoch."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        identity: Callable[[], ConsumerGroupMetadata],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._member_of = identity

    async def commit(
        self, offsets: Mapping[PartitionKey, TopicPartition], deadline: Deadline
    ) -> dict[PartitionKey, KafkaError | None]:
        error_codes: dict[PartitionKey, int] = {}
        remaining = dict(offsets)
        backoff = self._new_backoff()
        while remaining:
            error_codes |= await self._commit(remaining, deadline)
            remaining = {
                partition: offsets[partition]
                for partition in remaining
                if self._is_retriable(error_codes[partition])
            }
            if not remaining or not await _back_off(backoff, deadline):
                break
        return {
            partition: broker_error(code) if code else None
            for partition, code in error_codes.items()
        }

    async def committed(
        self, partitions: Collection[PartitionKey], deadline: Deadline
    ) -> dict[PartitionKey, TopicPartition]:
        """Returns committed offsets; with read_committed it waits for open transactions."""
        offsets: dict[PartitionKey, TopicPartition] = {}
        remaining = set(partitions)
        backoff = self._new_backoff()
        while remaining:
            try:
                offsets |= await self._fetch(remaining, deadline)
            except KafkaException as failure:
                if not offsets or failure.args[0] != KafkaError._TIMED_OUT:
                    raise
                break  # the results so far say more than a timeout
            remaining = {
                partition
                for partition in remaining
                if (error := offsets[partition].error) is not None
                and self._is_retriable(error.code())
            }
            if not remaining or not await _back_off(backoff, deadline):
                break
        return offsets

    def _is_retriable(self, code: int) -> bool:
        """Whether a retry may have another result."""
        match code:
            case ErrorCode.STALE_MEMBER_EPOCH:
                # The next heartbeat brings the new epoch, if this is still a member.
                return self._member_of().generation_id != NOT_A_MEMBER
            case ErrorCode.UNKNOWN_TOPIC_ID:
                self._cluster.refresh()
                return True
            case _:
                return code in (ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.REQUEST_TIMED_OUT)

    def _new_backoff(self) -> Backoff:
        return Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)

    @property
    def _group_id(self) -> str:
        if self._settings.group_id is None:
            fail(KafkaError._UNKNOWN_GROUP, "committed offsets belong to a group: set group.id")
        return self._settings.group_id

    # Requests

    async def _commit(
        self, offsets: Mapping[PartitionKey, TopicPartition], deadline: Deadline
    ) -> dict[PartitionKey, int]:
        """Returns the error codes of partitions."""
        topic_ids = self._topic_ids(offsets)
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_ids.id(topic),
                partitions=[_commit_partition(offsets[topic, index]) for index in indexes],
            )
            for topic, indexes in group_by_topic(sorted(offsets)).items()
        ]

        def request() -> OffsetCommitRequest:
            member = self._member_of()
            if member.generation_id == NOT_A_MEMBER:
                return OffsetCommitRequest(group_id=self._group_id, topics=topics)
            return OffsetCommitRequest(
                group_id=self._group_id,
                generation_id_or_member_epoch=member.generation_id,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                topics=topics,
            )

        def error_of(response: OffsetCommitResponse) -> int:
            codes = (
                partition.error_code for topic in response.topics for partition in topic.partitions
            )
            return next((code for code in codes if is_retriable(broker_error(code))), 0)

        response = await self._send(request, error_of, topic_ids, deadline)
        return {
            (topic_ids.name(topic), partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }

    async def _fetch(
        self, partitions: Iterable[PartitionKey], deadline: Deadline
    ) -> dict[PartitionKey, TopicPartition]:
        topic_ids = self._topic_ids(partitions)
        topics = [
            OffsetFetchRequestTopics(
                name=topic, topic_id=topic_ids.id(topic), partition_indexes=indexes
            )
            for topic, indexes in group_by_topic(sorted(partitions)).items()
        ]

        def request() -> OffsetFetchRequest:
            group = OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
            member = self._member_of()
            if self._settings.group_protocol == "consumer" and member.generation_id != NOT_A_MEMBER:
                group.member_id, group.member_epoch = member.member_id, member.generation_id
            must_be_stable = self._settings.isolation_level == "read_committed"
            return OffsetFetchRequest(groups=[group], require_stable=must_be_stable)

        response = await self._send(request, lambda r: r.groups[0].error_code, topic_ids, deadline)
        (group,) = response.groups
        if group.error_code == ErrorCode.STALE_MEMBER_EPOCH:
            return {
                partition: _offset_with_error(partition, group.error_code)
                for partition in partitions
            }
        if group.error_code:
            raise KafkaException(broker_error(group.error_code))
        offsets = (
            _committed_offset(topic_ids.name(topic), partition)
            for topic in group.topics
            for partition in topic.partitions
        )
        return {(partition.topic, partition.partition): partition for partition in offsets}

    async def _send(
        self,
        request: Callable[[], Message],
        error_of: Callable[[Any], int],
        topic_ids: "_TopicIds",
        deadline: Deadline,
    ) -> Any:
        return await self._cluster.send_to_coordinator(
            CoordinatorType.GROUP,
            self._group_id,
            request,
            error_of,
            deadline=deadline,
            max_version=None if topic_ids.is_complete else LAST_VERSION_WITH_NAMES,
        )

    def _topic_ids(self, partitions: Iterable[PartitionKey]) -> "_TopicIds":
        topics = self._cluster.metadata.topics
        names = {topic for topic, _ in partitions}
        return _TopicIds(
            {name: topics[name].topic_id if name in topics else ZERO for name in names}
        )


class _TopicIds:
    """The ids of topics, and the names of ids."""

    def __init__(self, ids: Mapping[str, bytes]) -> None:
        self._ids = ids
        self._names = {topic_id: name for name, topic_id in ids.items()}

    @property
    def is_complete(self) -> bool:
        return ZERO not in self._names

    def id(self, name: str) -> bytes:
        return self._ids[name]

    def name(self, topic: OffsetCommitResponseTopic | OffsetFetchResponseTopics) -> str:
        """Returns the name of a topic of a response, which has a name or an id."""
        return topic.name or self._names[topic.topic_id]


def _offset_with_error(partition: PartitionKey, code: int) -> TopicPartition:
    failed = TopicPartition(*partition)
    failed.error = broker_error(code)
    return failed


def _commit_partition(offset: TopicPartition) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=offset.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata or "",
    )


def _committed_offset(topic: str, response: OffsetFetchResponsePartitions) -> TopicPartition:
    offset = TopicPartition(
        topic,
        response.partition_index,
        response.committed_offset if response.committed_offset >= 0 else OFFSET_INVALID,
        response.metadata or None,
        response.committed_leader_epoch if response.committed_leader_epoch >= 0 else None,
    )
    if response.error_code:
        offset.error = broker_error(response.error_code)
    return offset


async def _back_off(backoff: Backoff, deadline: Deadline) -> bool:
    """Waits before the next attempt; returns False if the deadline comes first."""
    pause_ms = backoff.next_ms()
    if pause_ms >= deadline.remaining_ms():
        return False
    await asyncio.sleep(pause_ms / 1000)
    return True
