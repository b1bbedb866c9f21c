"""Questions of users that change nothing: offsets, times, topics."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.client.cluster import Cluster, Deadline
from barnabas.client.consumer.group import ConsumerCoordinator
from barnabas.client.consumer.offset_lookup import OffsetAndTimestamp, OffsetLookup, OffsetResults
from barnabas.client.consumer.subscription_state import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    TopicPartitionState,
)
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.values import OFFSET_END, OFFSET_INVALID, TopicPartition, TopicPartitionTuple
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.admin.metadata import ClusterMetadata


class OffsetQueries:
    """Answers from what the consumer knows, or from the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        group: ConsumerCoordinator | None,
        offsets: OffsetLookup,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._offsets = offsets
        self._assignment = assignment

    # What the consumer knows

    def assignment(self) -> list[TopicPartition]:
        return [
            TopicPartition(*key, each.requested_offset) for key, each in self._assignment.items()
        ]

    def positions(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Where the user is: after the last message he got."""
        found = []
        for place in partitions:
            each = self._assignment.get((place.topic, place.partition))
            delivered = None if each is None else each.position()
            found.append(delivered or TopicPartition(place.topic, place.partition, OFFSET_INVALID))
        return found

    def cached_watermarks(self, place: TopicPartition) -> tuple[int, int]:
        """As the last fetch told them."""
        each = self._assignment.get((place.topic, place.partition))
        if each is None:
            return OFFSET_INVALID, OFFSET_INVALID
        return each.log_start_offset, each.high_watermark

    def lags(self, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, int]:
        """How many offsets are ahead of the user; -1 where that is not known yet."""
        asked = self.assignment() if partitions is None else partitions
        found = {each: self._assignment.get((each.topic, each.partition)) for each in asked}
        return {each: -1 if at is None else at.lag for each, at in found.items()}

    # What the cluster knows

    async def committed(
        self, partitions: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        if self._group is None:
            fail(KafkaError._UNKNOWN_GROUP, "committed() needs a group.id")
        keys = [(each.topic, each.partition) for each in partitions]
        found = await self._group.committed(keys, deadline=Deadline.after(timeout_ms))
        for each in found.values():
            if each.error is not None and each.error.retriable():
                reason = f"{each.topic} [{each.partition}]: {each.error.str()}"
                fail(KafkaError._TIMED_OUT, f"committed() was not answered in time: {reason}")
        return [found[key] for key in keys]

    async def watermarks(self, place: TopicPartition, timeout_ms: int) -> tuple[int, int]:
        key = (place.topic, place.partition)
        deadline = Deadline.after(timeout_ms)
        low, high = await asyncio.gather(
            self._by_time({key: EARLIEST_TIMESTAMP}, deadline),
            self._by_time({key: LATEST_TIMESTAMP}, deadline),
        )
        return _offset(low[key]), _offset(high[key])

    async def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        """For each the first offset at or after the time that stands in place of its offset."""
        wanted = {(each.topic, each.partition): each.offset for each in partitions}
        found = await self._by_time(wanted, Deadline.after(timeout_ms))
        answers = []
        for each in partitions:
            outcome = found[each.topic, each.partition]
            answer = TopicPartition(each.topic, each.partition)
            if isinstance(outcome, KafkaError):
                answer.error = outcome
            else:
                answer.offset = outcome.offset if outcome.offset >= 0 else OFFSET_END
                answer.leader_epoch = outcome.leader_epoch if outcome.leader_epoch >= 0 else None
            answers.append(answer)
        if answers and all(each.error is not None for each in answers):
            raise KafkaException(answers[0].error)
        return answers

    async def _by_time(
        self, wanted: Mapping[TopicPartitionTuple, int], deadline: Deadline
    ) -> OffsetResults:
        """As the leaders tell; topics that do not exist are not waited for."""
        missing = await self._missing({topic for topic, _ in wanted}, deadline)
        known = {key: time for key, time in wanted.items() if key[0] not in missing}
        found = await self._offsets.list_offsets(known, deadline) if known else {}
        for topic, index in wanted.keys() - known.keys():
            reason = f"{topic} [{index}]: there is no such topic"
            found[topic, index] = KafkaError(KafkaError._UNKNOWN_PARTITION, reason)
        return found

    async def _missing(self, topics: set[str], deadline: Deadline) -> set[str]:
        unheard_of = topics - self._cluster.metadata.topics.keys()
        if not unheard_of:
            return set()
        told = await self._cluster.describe(unheard_of, timeout_ms=deadline.remaining_ms())
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {each.name for each in told.topics if each.name and each.error_code == unknown}

    async def list_topics(self, topic: str | None, timeout_ms: int) -> "ClusterMetadata":
        from barnabas.client.admin.metadata import cluster_metadata

        topics = None if topic is None else [topic]
        return cluster_metadata(
            *await self._cluster.describe_with_node(topics, timeout_ms=timeout_ms)
        )

    async def cluster_id(self, timeout_ms: int) -> str | None:
        known = self._cluster.metadata.cluster_id
        return known or (await self._cluster.describe([], timeout_ms=timeout_ms)).cluster_id


def _offset(outcome: OffsetAndTimestamp | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise KafkaException(outcome)
    return outcome.offset
