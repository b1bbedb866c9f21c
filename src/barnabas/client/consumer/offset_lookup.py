"""Requests offsets from partition leaders: ListOffsets and OffsetForLeaderEpoch.

Retriable errors are retried, with a new leader if there is one, until the deadline; the result of
a partition is then its last error.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

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

T = TypeVar("T")

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
Leaders = dict[PartitionKey, PartitionInfo]


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

        def request(leaders: Leaders) -> Message:
            topics = _by_topic(
                leaders,
                lambda key, epoch: ListOffsetsPartition(
                    partition_index=key[1], current_leader_epoch=epoch, timestamp=timestamps[key]
                ),
            )
            return ListOffsetsRequest(
                replica_id=_NO_REPLICA,
                isolation_level=isolation,
                topics=[ListOffsetsTopic(name=topic, partitions=p) for topic, p in topics.items()],
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

        def request(leaders: Leaders) -> Message:
            topics = _by_topic(
                leaders,
                lambda key, epoch: OffsetForLeaderPartition(
                    partition=key[1], current_leader_epoch=epoch, leader_epoch=epochs[key]
                ),
            )
            return OffsetForLeaderEpochRequest(
                replica_id=_NO_REPLICA,
                topics=[
                    OffsetForLeaderTopic(topic=topic, partitions=p) for topic, p in topics.items()
                ],
            )

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
        request: Callable[[Leaders], Message],
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
        request: Callable[[Leaders], Message],
        read: Callable[[Any], OffsetResults],
        deadline: Deadline,
    ) -> OffsetResults:
        results: OffsetResults = {}
        by_node: defaultdict[int, Leaders] = defaultdict(dict)
        for partition in partitions:
            leader = self._cluster.metadata.leader(*partition)
            if leader is None or leader.leader < 0:
                results[partition] = self._leader_error(partition)
            else:
                by_node[leader.leader][partition] = leader

        async def send(node_id: int, leaders: Leaders) -> None:
            timeout_ms = max(1, min(deadline.remaining_ms(), self._settings.request_timeout_ms))
            try:
                response = await self._cluster.send_request(
                    request(leaders), to=node_id, timeout_ms=timeout_ms
                )
            except KafkaException as failure:
                results.update(dict.fromkeys(leaders, failure.args[0]))
            else:
                missing = KafkaError(KafkaError._UNKNOWN_PARTITION, retriable=True)
                results.update(dict.fromkeys(leaders, missing))
                results.update(read(response))

        await asyncio.gather(*(send(*entry) for entry in by_node.items()))
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


def _by_topic(leaders: Leaders, partition: Callable[[PartitionKey, int], T]) -> dict[str, list[T]]:
    """Returns the partitions of a request, made from their keys and leader epochs."""
    topics: defaultdict[str, list[T]] = defaultdict(list)
    for key, leader in leaders.items():
        topics[key[0]].append(partition(key, leader.leader_epoch))
    return topics


def _result(code: int, offset: OffsetAndTimestamp) -> OffsetAndTimestamp | KafkaError:
    return broker_error(code) if code else offset


def _is_retriable(outcome: OffsetAndTimestamp | KafkaError, attempt: int) -> bool:
    if not isinstance(outcome, KafkaError):
        return False
    is_unknown = outcome == KafkaError.UNKNOWN_TOPIC_OR_PART
    return outcome.retriable() and not (is_unknown and attempt >= MAX_UNKNOWN_TOPIC_ATTEMPTS)
