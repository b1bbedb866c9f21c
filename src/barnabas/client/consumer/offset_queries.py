"""Read-only calls of users: positions, committed offsets, watermarks, lags and topics."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.client.cluster import ClusterClient, Deadline
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
    """Reads offsets of the assignment, and requests others from the cluster."""

    def __init__(
        self,
        cluster: ClusterClient,
        coordinator: ConsumerCoordinator | None,
        offsets: OffsetLookup,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._offsets = offsets
        self._assignment = assignment

    # Without a request

    def assignment(self) -> list[TopicPartition]:
        return [
            TopicPartition(*key, state.requested_offset) for key, state in self._assignment.items()
        ]

    def positions(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Returns the offsets after the last delivered messages."""
        positions = []
        for partition in partitions:
            state = self._assignment.get((partition.topic, partition.partition))
            position = None if state is None else state.position()
            positions.append(
                position or TopicPartition(partition.topic, partition.partition, OFFSET_INVALID)
            )
        return positions

    def cached_watermarks(self, partition: TopicPartition) -> tuple[int, int]:
        """Returns the watermarks of the last fetch."""
        state = self._assignment.get((partition.topic, partition.partition))
        if state is None:
            return OFFSET_INVALID, OFFSET_INVALID
        return state.log_start_offset, state.high_watermark

    def lags(self, partitions: Sequence[TopicPartition] | None) -> dict[TopicPartition, int]:
        """Returns the lag of partitions; -1 if it is not known yet."""
        requested = self.assignment() if partitions is None else partitions
        states = {
            partition: self._assignment.get((partition.topic, partition.partition))
            for partition in requested
        }
        return {
            partition: -1 if state is None else state.lag for partition, state in states.items()
        }

    # With requests

    async def committed(
        self, partitions: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        if self._coordinator is None:
            fail(KafkaError._UNKNOWN_GROUP, "committed() needs a group.id")
        keys = [(offset.topic, offset.partition) for offset in partitions]
        offsets = await self._coordinator.committed(keys, deadline=Deadline.after(timeout_ms))
        for offset in offsets.values():
            if offset.error is not None and offset.error.retriable():
                reason = f"{offset.topic} [{offset.partition}]: {offset.error.str()}"
                fail(KafkaError._TIMED_OUT, f"committed() timed out: {reason}")
        return [offsets[key] for key in keys]

    async def watermarks(self, partition: TopicPartition, timeout_ms: int) -> tuple[int, int]:
        key = (partition.topic, partition.partition)
        deadline = Deadline.after(timeout_ms)
        low, high = await asyncio.gather(
            self._list_offsets({key: EARLIEST_TIMESTAMP}, deadline),
            self._list_offsets({key: LATEST_TIMESTAMP}, deadline),
        )
        return _require_offset(low[key]), _require_offset(high[key])

    async def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout_ms: int
    ) -> list[TopicPartition]:
        """Returns the first offsets at or after the timestamps given as offsets."""
        timestamps = {
            (partition.topic, partition.partition): partition.offset for partition in partitions
        }
        offsets = await self._list_offsets(timestamps, Deadline.after(timeout_ms))
        results = []
        for partition in partitions:
            outcome = offsets[partition.topic, partition.partition]
            result = TopicPartition(partition.topic, partition.partition)
            if isinstance(outcome, KafkaError):
                result.error = outcome
            else:
                result.offset = outcome.offset if outcome.offset >= 0 else OFFSET_END
                result.leader_epoch = outcome.leader_epoch if outcome.leader_epoch >= 0 else None
            results.append(result)
        if results and all(partition.error is not None for partition in results):
            raise KafkaException(results[0].error)
        return results

    async def _list_offsets(
        self, timestamps: Mapping[TopicPartitionTuple, int], deadline: Deadline
    ) -> OffsetResults:
        """Requests offsets from leaders; a topic that does not exist fails at once."""
        missing = await self._missing_topics({topic for topic, _ in timestamps}, deadline)
        existing = {
            key: timestamp for key, timestamp in timestamps.items() if key[0] not in missing
        }
        offsets = await self._offsets.list_offsets(existing, deadline) if existing else {}
        for topic, index in timestamps.keys() - existing.keys():
            reason = f"{topic} [{index}]: the topic does not exist"
            offsets[topic, index] = KafkaError(KafkaError._UNKNOWN_PARTITION, reason)
        return offsets

    async def _missing_topics(self, topics: set[str], deadline: Deadline) -> set[str]:
        unknown_topics = topics - self._cluster.metadata.topics.keys()
        if not unknown_topics:
            return set()
        response = await self._cluster.describe(unknown_topics, timeout_ms=deadline.remaining_ms())
        unknown_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {
            topic.name
            for topic in response.topics
            if topic.name and topic.error_code == unknown_error
        }

    async def list_topics(self, topic: str | None, timeout_ms: int) -> "ClusterMetadata":
        from barnabas.client.admin.metadata import cluster_metadata

        topics = None if topic is None else [topic]
        return cluster_metadata(
            *await self._cluster.describe_with_node(topics, timeout_ms=timeout_ms)
        )

    async def cluster_id(self, timeout_ms: int) -> str | None:
        cluster_id = self._cluster.metadata.cluster_id
        return cluster_id or (await self._cluster.describe([], timeout_ms=timeout_ms)).cluster_id


def _require_offset(outcome: OffsetAndTimestamp | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise KafkaException(outcome)
    return outcome.offset
