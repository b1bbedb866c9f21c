"""The calls that `Consumer` and `AioConsumer` share: their signature, checks and docstring.

A call is a coroutine function whose first parameter is the core of the consumer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from barnabas.client._message import Message
from barnabas.client.cluster import Deadline
from barnabas.client.consumer import validation
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.offset_committer import first_error
from barnabas.client.consumer.offset_lookup import OffsetAndTimestamp, OffsetResults
from barnabas.client.consumer.subscription_state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.values import (
    OFFSET_END,
    OFFSET_INVALID,
    ConsumerGroupMetadata,
    PartitionKey,
    TopicPartition,
)
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.admin.metadata import ClusterMetadata

P = ParamSpec("P")
T = TypeVar("T")

Call = Callable[Concatenate[ConsumerCore, P], Coroutine[Any, Any, T]]


# Assignment


async def assign(core: ConsumerCore, partitions: list[TopicPartition]) -> None:
    """Reads these partitions alone, from their offsets or from the committed ones."""
    await core.assign(validation.distinct_topic_partitions(partitions))


async def unassign(core: ConsumerCore) -> None:
    await core.unassign()


async def incremental_assign(core: ConsumerCore, partitions: list[TopicPartition]) -> None:
    """Reads these partitions besides the assigned ones."""
    core.incremental_assign(validation.distinct_topic_partitions(partitions))


async def incremental_unassign(core: ConsumerCore, partitions: list[TopicPartition]) -> None:
    await core.incremental_unassign(validation.topic_partitions(partitions))


async def assignment(core: ConsumerCore) -> list[TopicPartition]:
    return [TopicPartition(*key, state.requested_offset) for key, state in core.assignment.items()]


async def pause(core: ConsumerCore, partitions: list[TopicPartition]) -> None:
    """Delivers no messages of these partitions until `resume`; they stay assigned."""
    core.pause(validation.topic_partitions(partitions))


async def resume(core: ConsumerCore, partitions: list[TopicPartition]) -> None:
    core.resume(validation.topic_partitions(partitions))


# Offsets


async def seek(core: ConsumerCore, partition: TopicPartition) -> None:
    """Continues to read the assigned partition at its offset."""
    core.seek(validation.topic_partition(partition))


async def position(core: ConsumerCore, partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Returns the offsets after the last consumed messages; OFFSET_INVALID without one."""
    positions = []
    for partition in validation.topic_partitions(partitions):
        state = core.assignment.get((partition.topic, partition.partition))
        offset = None if state is None else state.position()
        none = TopicPartition(partition.topic, partition.partition, OFFSET_INVALID)
        positions.append(offset or none)
    return positions


async def committed(
    core: ConsumerCore, partitions: list[TopicPartition], timeout: float = -1
) -> list[TopicPartition]:
    if core.coordinator is None:
        fail(KafkaError._UNKNOWN_GROUP, "committed() reads the offsets of a group: set group.id")
    keys = [(offset.topic, offset.partition) for offset in validation.topic_partitions(partitions)]
    offsets = await core.coordinator.committed(keys, deadline=_deadline(timeout))
    for offset in offsets.values():
        if offset.error is not None and offset.error.retriable():
            reason = f"{offset.topic} [{offset.partition}]: {offset.error.str()}"
            fail(KafkaError._TIMED_OUT, f"committed() timed out: {reason}")
    return [offsets[key] for key in keys]


async def commit(
    core: ConsumerCore,
    message: Message | None = None,
    offsets: list[TopicPartition] | None = None,
    asynchronous: bool = True,
) -> list[TopicPartition] | None:
    """Commits the offset after a message, these offsets, or all stored offsets.

    If `asynchronous`, it returns at once, and `on_commit` is called with the outcome.
    Otherwise it returns the committed offsets, or raises KafkaException.
    """
    to_commit = validation.offsets_to_commit(message, offsets, "commit")
    if to_commit is None:
        to_commit = core.offset_committer.uncommitted_offsets()
    if asynchronous:
        core.offset_committer.commit_async(to_commit)
        return None
    timeout_ms = core.settings.default_api_timeout_ms
    committed = await core.offset_committer.commit(to_commit, timeout_ms)
    if (error := first_error(committed)) is not None:
        raise KafkaException(error)
    return committed


async def store_offsets(
    core: ConsumerCore, message: Message | None = None, offsets: list[TopicPartition] | None = None
) -> list[TopicPartition]:
    """Stores offsets for the next commit; needs `enable.auto.offset.store` to be false."""
    to_store = validation.offsets_to_commit(message, offsets, "store")
    if to_store is None:
        raise ValueError("expected either message or offsets")
    return core.offset_committer.store(to_store)


async def offsets_for_times(
    core: ConsumerCore, partitions: list[TopicPartition], timeout: float = -1
) -> list[TopicPartition]:
    """Returns the first offsets at or after timestamps, in ms, given as the offsets."""
    timestamps = {
        (partition.topic, partition.partition): partition.offset
        for partition in validation.topic_partitions(partitions)
    }
    offsets = await _list_offsets(core, timestamps, _deadline(timeout))
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


async def get_watermark_offsets(
    core: ConsumerCore, partition: TopicPartition, timeout: float = -1, cached: bool = False
) -> tuple[int, int]:
    """Returns the log start offset and the high watermark of a partition.

    If `cached`, they are those of the last fetch, and no request is sent.
    """
    validation.topic_partition(partition)
    key = (partition.topic, partition.partition)
    if cached:
        state = core.assignment.get(key)
        if state is None:
            return OFFSET_INVALID, OFFSET_INVALID
        return state.log_start_offset, state.high_watermark
    deadline = _deadline(timeout)
    low, high = await asyncio.gather(
        _list_offsets(core, {key: EARLIEST_TIMESTAMP}, deadline),
        _list_offsets(core, {key: LATEST_TIMESTAMP}, deadline),
    )
    return _require_offset(low[key]), _require_offset(high[key])


async def lag(
    core: ConsumerCore, partitions: list[TopicPartition] | None = None
) -> dict[TopicPartition, int]:
    """Returns the lag of partitions (default: all assigned); -1 if it is not known yet."""
    if partitions is None:
        partitions = await assignment(core)
    states = {
        partition: core.assignment.get((partition.topic, partition.partition))
        for partition in validation.topic_partitions(partitions)
    }
    return {partition: -1 if state is None else state.lag for partition, state in states.items()}


# The cluster and the group


async def list_topics(
    core: ConsumerCore, topic: str | None = None, timeout: float = -1
) -> "ClusterMetadata":
    from barnabas.client.admin.metadata import cluster_metadata

    topics = None if topic is None else [topic]
    timeout_ms = validation.timeout_milliseconds(timeout)
    return cluster_metadata(*await core.cluster.describe_with_node(topics, timeout_ms=timeout_ms))


async def cluster_id(core: ConsumerCore, timeout: float = -1) -> str | None:
    timeout_ms = validation.timeout_milliseconds(timeout)
    known = core.cluster.metadata.cluster_id
    return known or (await core.cluster.describe([], timeout_ms=timeout_ms)).cluster_id


async def memberid(core: ConsumerCore) -> str | None:
    return (core.coordinator.member_id or None) if core.coordinator is not None else None


async def consumer_group_metadata(core: ConsumerCore) -> ConsumerGroupMetadata:
    if core.coordinator is None:
        fail(KafkaError._UNKNOWN_GROUP, "a consumer without a group.id is in no group")
    return core.coordinator.metadata


async def set_sasl_credentials(core: ConsumerCore, username: str, password: str) -> None:
    """Uses these credentials for connections opened from now on."""
    core.cluster.set_sasl_credentials(username, password)


async def _list_offsets(
    core: ConsumerCore, timestamps: Mapping[PartitionKey, int], deadline: Deadline
) -> OffsetResults:
    """Requests offsets from leaders; a topic that does not exist fails at once."""
    missing = await _missing_topics(core, {topic for topic, _ in timestamps}, deadline)
    existing = {key: timestamp for key, timestamp in timestamps.items() if key[0] not in missing}
    offsets = await core.offset_lookup.list_offsets(existing, deadline) if existing else {}
    for topic, index in timestamps.keys() - existing.keys():
        reason = f"{topic} [{index}]: the topic does not exist"
        offsets[topic, index] = KafkaError(KafkaError._UNKNOWN_PARTITION, reason)
    return offsets


async def _missing_topics(core: ConsumerCore, topics: set[str], deadline: Deadline) -> set[str]:
    unknown_topics = topics - core.cluster.metadata.topics.keys()
    if not unknown_topics:
        return set()
    response = await core.cluster.describe(unknown_topics, timeout_ms=deadline.remaining_ms())
    unknown_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {
        topic.name for topic in response.topics if topic.name and topic.error_code == unknown_error
    }


def _require_offset(outcome: OffsetAndTimestamp | KafkaError) -> int:
    if isinstance(outcome, KafkaError):
        raise KafkaException(outcome)
    return outcome.offset


def _deadline(timeout: float) -> Deadline:
    return Deadline.after(validation.timeout_milliseconds(timeout))
