"""Requests offsets from partition leaders: ListOffsets and OffsetForLeaderEpoch.

Retriable errors are retried, with a new leader if there is one, until the deadline; the result of
a partition is then its last error.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.cluster import Backoff, ClusterClient, Deadline, PartitionInfo
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.schema import Message

READ_COMMITTED = 1
MAX_UNKNOWN_TOPIC_ATTEMPTS = 5
"""A new topic may not have reached every broker; a deleted one will not come back."""
_NO_REPLICA = -1


@dataclass(slots=True, frozen=True)
class OffsetAndTimestamp:
    """An offset, -1 if there is none, with the leader epoch and timestamp of its record."""

    offset: int
    leader_epoch: int
    timestamp: int = -1


OffsetResults = dict[PartitionKey, OffsetAndTimestamp | KafkaError]


class OffsetLookup:
    """Sends requests for offsets to the leaders of partitions."""

    def __init__(self, cluster: ClusterClient, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._settings = settings

    async def list_offsets(
        self, timestamps: Mapping[PartitionKey, int], deadline: Deadline
    ) -> OffsetResults:
        """Returns the first offsets at or after timestamps; -1 is the end, -2 the beginning."""
        isolation = int(self._settings.isolation_level == "read_committed") * READ_COMMITTED

        def request(partitions: Iterable[tuple[PartitionKey, PartitionInfo]]) -> Message:
            topics: dict[str, ListOffsetsTopic] = {}
            for (topic, index), leader in partitions:
                named = topics.setdefault(topic, ListOffsetsTopic(name=topic, partitions=[]))
                named.partitions.append(
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=leader.leader_epoch,
                        timestamp=timestamps[topic, index],
                    )
                )
            return ListOffsetsRequest(
                replica_id=_NO_REPLICA,
                isolation_level=isolation,
                topics=list(topics.values()),
                timeout_ms=self._settings.request_timeout_ms,
            )

        def read(response: Any) -> OffsetResults:
            return {
                (topic.name, partition.partition_index): _result(
                    partition.error_code,
                    OffsetAndTimestamp(
                        partition.offset, partition.leader_epoch, partition.timestamp
                    ),
                )
                for topic in response.topics
                for partition in topic.partitions
            }

        return await self._retry(timestamps, request, read, deadline)

    async def offsets_for_leader_epochs(
        self, epochs: Mapping[PartitionKey, int], deadline: Deadline
    ) -> OffsetResults:
        """Returns the end offsets of epochs, or of the last epoch before; -1 if there is none."""

        def request(partitions: Iterable[tuple[PartitionKey, PartitionInfo]]) -> Message:
            topics: dict[str, OffsetForLeaderTopic] = {}
            for (topic, index), leader in partitions:
                named = topics.setdefault(topic, OffsetForLeaderTopic(topic=topic, partitions=[]))
                named.partitions.append(
                    OffsetForLeaderPartition(
                        partition=index,
                        current_leader_epoch=leader.leader_epoch,
                        leader_epoch=epochs[topic, index],
                    )
                )
            return OffsetForLeaderEpochRequest(replica_id=_NO_REPLICA, topics=list(topics.values()))

        def read(response: Any) -> OffsetResults:
            return {
                (topic.topic, partition.partition): _result(
                    partition.error_code,
                    OffsetAndTimestamp(partition.end_offset, partition.leader_epoch),
                )
                for topic in response.topics
                for partition in topic.partitions
            }

        return await self._retry(epochs, request, read, deadline)

    async def _retry(
        self,
        partitions: Iterable[PartitionKey],
        request: Callable[[Iterable[tuple[PartitionKey, PartitionInfo]]], Message],
        read: Callable[[Any], OffsetResults],
        deadline: Deadline,
    ) -> OffsetResults:
        """Sends requests until no partition has a retriable error, or the deadline passes."""
        results: OffsetResults = {}
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        remaining = set(partitions)
        topics = {topic for topic, _ in remaining}
        self._cluster.add_topics(topics)
        for attempt in itertools.count(1):
            results |= await self._send_once(remaining, request, read, deadline)
            remaining = {
                partition for partition in remaining if _is_retriable(results[partition], attempt)
            }
            pause_ms = backoff.next_ms()
            if not remaining or deadline.remaining_ms() <= pause_ms:
                break
            self._cluster.refresh()
            await asyncio.sleep(pause_ms / 1000)
        return results

    async def _send_once(
        self,
        partitions: Iterable[PartitionKey],
        request: Callable[[Iterable[tuple[PartitionKey, PartitionInfo]]], Message],
        read: Callable[[Any], OffsetResults],
        deadline: Deadline,
    ) -> OffsetResults:
        results: OffsetResults = {}
        by_leader: defaultdict[int, list[tuple[PartitionKey, PartitionInfo]]] = defaultdict(list)
        for partition in partitions:
            leader = self._cluster.metadata.leader(*partition)
            if leader is None or leader.leader < 0:
                results[partition] = self._leader_error(partition)
            else:
                by_leader[leader.leader].append((partition, leader))

        async def send(
            node_id: int, partitions_led: list[tuple[PartitionKey, PartitionInfo]]
        ) -> None:
            timeout_ms = max(1, min(deadline.remaining_ms(), self._settings.request_timeout_ms))
            try:
                response = await self._cluster.send_request(
                    request(partitions_led), to=node_id, timeout_ms=timeout_ms
                )
            except KafkaException as failure:
                results.update({partition: failure.args[0] for partition, _ in partitions_led})
            else:
                missing = KafkaError(KafkaError._UNKNOWN_PARTITION, retriable=True)
                results.update({partition: missing for partition, _ in partitions_led})
                results.update(read(response))

        await asyncio.gather(
            *(send(node_id, partitions_led) for node_id, partitions_led in by_leader.items())
        )
        return results

    def _leader_error(self, partition: PartitionKey) -> KafkaError:
        name, index = partition
        topic = self._cluster.metadata.topics.get(name)
        if topic is None:
            return KafkaError(KafkaError._WAIT_CACHE, f"{name}: not known yet", retriable=True)
        if topic.error:
            return broker_error(topic.error, f"{name}: {topic.error.name}")
        if index >= len(topic.partitions):
            return KafkaError(
                KafkaError._UNKNOWN_PARTITION,
                f"{name} has {len(topic.partitions)} partitions, no partition {index}",
            )
        return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"{name} [{index}] has no leader")


def _result(code: int, offset: OffsetAndTimestamp) -> OffsetAndTimestamp | KafkaError:
    return broker_error(code) if code else offset


def _is_retriable(outcome: OffsetAndTimestamp | KafkaError, attempt: int) -> bool:
    if not isinstance(outcome, KafkaError):
        return False
    is_unknown = outcome == KafkaError.UNKNOWN_TOPIC_OR_PART
    return outcome.retriable() and not (is_unknown and attempt >= MAX_UNKNOWN_TOPIC_ATTEMPTS)
