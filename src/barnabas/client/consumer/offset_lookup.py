"""Offsets by time and the ends of leader epochs, asked of whoever leads the partitions.

Both are asked again, of a new leader if there is one, until they are answered or the time is
over; what a partition's answer is then is its error.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.cluster import Backoff, Cluster, Deadline, PartitionInfo
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import TopicPartitionTuple
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
"""A new topic may not be known everywhere yet; one that was deleted never will be again."""
_CONSUMER = -1


@dataclass(slots=True, frozen=True)
class OffsetAndTimestamp:
    """An offset, -1 if there is none, with the epoch of the leader that wrote there."""

    offset: int
    leader_epoch: int
    timestamp: int = -1


OffsetResults = dict[TopicPartitionTuple, OffsetAndTimestamp | KafkaError]


class OffsetLookup:
    """Asks the leaders."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._settings = settings

    async def list_offsets(
        self, wanted: Mapping[TopicPartitionTuple, int], deadline: Deadline
    ) -> OffsetResults:
        """The first offset at or after a timestamp; -1 asks for the end, -2 for the beginning."""
        isolation = int(self._settings.isolation_level == "read_committed") * READ_COMMITTED

        def request(partitions: Iterable[tuple[TopicPartitionTuple, PartitionInfo]]) -> Message:
            topics: dict[str, ListOffsetsTopic] = {}
            for (topic, index), leader in partitions:
                named = topics.setdefault(topic, ListOffsetsTopic(name=topic, partitions=[]))
                named.partitions.append(
                    ListOffsetsPartition(
                        partition_index=index,
                        current_leader_epoch=leader.leader_epoch,
                        timestamp=wanted[topic, index],
                    )
                )
            return ListOffsetsRequest(
                replica_id=_CONSUMER,
                isolation_level=isolation,
                topics=list(topics.values()),
                timeout_ms=self._settings.request_timeout_ms,
            )

        def answers(response: Any) -> OffsetResults:
            return {
                (topic.name, each.partition_index): _outcome(
                    each.error_code,
                    OffsetAndTimestamp(each.offset, each.leader_epoch, each.timestamp),
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._ask(wanted, request, answers, deadline)

    async def offsets_for_leader_epochs(
        self, epochs: Mapping[TopicPartitionTuple, int], deadline: Deadline
    ) -> OffsetResults:
        """Where an epoch ends, or the last before it that the leader has; -1 if it has none."""

        def request(partitions: Iterable[tuple[TopicPartitionTuple, PartitionInfo]]) -> Message:
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
            return OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))

        def answers(response: Any) -> OffsetResults:
            return {
                (topic.topic, each.partition): _outcome(
                    each.error_code, OffsetAndTimestamp(each.end_offset, each.leader_epoch)
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await self._ask(epochs, request, answers, deadline)

    async def _ask(
        self,
        wanted: Iterable[TopicPartitionTuple],
        request: Callable[[Iterable[tuple[TopicPartitionTuple, PartitionInfo]]], Message],
        answers: Callable[[Any], OffsetResults],
        deadline: Deadline,
    ) -> OffsetResults:
        """Ask leaders, until each partition has an answer that would stay the same."""
        found: OffsetResults = {}
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        left = set(wanted)
        topics = {topic for topic, _ in left}
        self._cluster.add_topics(topics)
        for attempt in itertools.count(1):
            found |= await self._ask_once(left, request, answers, deadline)
            left = {each for each in left if _may_pass(found[each], attempt)}
            pause_ms = backoff.next_ms()
            if not left or deadline.remaining_ms() <= pause_ms:
                break
            self._cluster.refresh()
            await asyncio.sleep(pause_ms / 1000)
        return found

    async def _ask_once(
        self,
        partitions: Iterable[TopicPartitionTuple],
        request: Callable[[Iterable[tuple[TopicPartitionTuple, PartitionInfo]]], Message],
        answers: Callable[[Any], OffsetResults],
        deadline: Deadline,
    ) -> OffsetResults:
        found: OffsetResults = {}
        by_leader: defaultdict[int, list[tuple[TopicPartitionTuple, PartitionInfo]]] = defaultdict(
            list
        )
        for each in partitions:
            leader = self._cluster.metadata.leader(*each)
            if leader is None or leader.leader < 0:
                found[each] = self._without_leader(each)
            else:
                by_leader[leader.leader].append((each, leader))

        async def ask(node_id: int, led: list[tuple[TopicPartitionTuple, PartitionInfo]]) -> None:
            timeout_ms = max(1, min(deadline.remaining_ms(), self._settings.request_timeout_ms))
            try:
                response = await self._cluster.send_request(
                    request(led), to=node_id, timeout_ms=timeout_ms
                )
            except KafkaException as failure:
                found.update({each: failure.args[0] for each, _ in led})
            else:
                missing = KafkaError(KafkaError._UNKNOWN_PARTITION, retriable=True)
                found.update({each: missing for each, _ in led})
                found.update(answers(response))

        await asyncio.gather(*(ask(node_id, led) for node_id, led in by_leader.items()))
        return found

    def _without_leader(self, partition: TopicPartitionTuple) -> KafkaError:
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


def _outcome(code: int, found: OffsetAndTimestamp) -> OffsetAndTimestamp | KafkaError:
    return broker_error(code) if code else found


def _may_pass(outcome: OffsetAndTimestamp | KafkaError, attempt: int) -> bool:
    if not isinstance(outcome, KafkaError):
        return False
    is_unknown = outcome == KafkaError.UNKNOWN_TOPIC_OR_PART
    return outcome.retriable() and not (is_unknown and attempt >= MAX_UNKNOWN_TOPIC_ATTEMPTS)
