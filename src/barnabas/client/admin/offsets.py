"""Offsets of partitions: list them, and delete the records before one."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import IsolationLevel, by_topic
from barnabas.client.admin.requests import UNSET, AdminRequests, require_partitions
from barnabas.client.admin.results import Results, error_of
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

_NO_REPLICA = -1
_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6


@dataclass(slots=True, frozen=True, order=True)
class OffsetSpec:
    """The offset to list: that of a timestamp in milliseconds, or one of the named offsets."""

    _value: int

    def __post_init__(self) -> None:
        if self._value < _EARLIEST_PENDING_UPLOAD:
            raise ValueError(f"{self._value} is neither a timestamp nor a named offset")

    @classmethod
    def earliest(cls) -> "OffsetSpec":
        """The log start offset."""
        return cls(_EARLIEST)

    @classmethod
    def latest(cls) -> "OffsetSpec":
        """The offset of the next record."""
        return cls(_LATEST)

    @classmethod
    def max_timestamp(cls) -> "OffsetSpec":
        """The offset of the record with the largest timestamp."""
        return cls(_MAX_TIMESTAMP)

    @classmethod
    def earliest_local(cls) -> "OffsetSpec":
        """The first offset in the leader's local log."""
        return cls(_EARLIEST_LOCAL)

    @classmethod
    def latest_tiered(cls) -> "OffsetSpec":
        """The last offset in remote storage."""
        return cls(_LATEST_TIERED)

    @classmethod
    def earliest_pending_upload(cls) -> "OffsetSpec":
        """The first offset that is not yet in remote storage."""
        return cls(_EARLIEST_PENDING_UPLOAD)

    @classmethod
    def for_timestamp(cls, timestamp: int) -> "OffsetSpec":
        """The first offset whose record has this timestamp, in milliseconds, or a later one."""
        return cls(timestamp)


class ListOffsetsResultInfo:
    """An offset with the timestamp and leader epoch of its record; -1 if there is no record."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, offset: int, timestamp: int, leader_epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch: int | None = leader_epoch if leader_epoch >= 0 else None

    def __repr__(self) -> str:
        return (
            f"ListOffsetsResultInfo(offset={self.offset}, timestamp={self.timestamp},"
            f" leader_epoch={self.leader_epoch})"
        )


@dataclass(slots=True, eq=False)
class DeletedRecords:
    """The new log start offset of a partition."""

    low_watermark: int


def list_offsets(
    admin: AdminRequests,
    topic_partition_offsets: dict[TopicPartition, OffsetSpec],
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartition, ListOffsetsResultInfo]]:
    """Returns one offset of each partition, by partition.

    `OffsetSpec` says which: the earliest, the latest, or the first at or after a timestamp. With
    READ_COMMITTED the latest offset is the last stable offset.
    """
    _require_specs(topic_partition_offsets)
    if not isinstance(isolation_level, IsolationLevel):
        raise TypeError(f"{isolation_level!r} is not an IsolationLevel")
    deadline = admin.deadline(request_timeout)

    async def exchange(
        leader: int | None, batch: list[TopicPartition]
    ) -> Mapping[TopicPartition, ListOffsetsResultInfo | KafkaError]:
        request = ListOffsetsRequest(
            replica_id=_NO_REPLICA,
            isolation_level=isolation_level.value,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=p.partition, timestamp=topic_partition_offsets[p]._value
                        )
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(batch).items()
            ],
            timeout_ms=deadline.remaining_ms(),
        )
        response = await admin.send(request, leader, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition)
            or ListOffsetsResultInfo(partition.offset, partition.timestamp, partition.leader_epoch)
            for topic in response.topics
            for partition in topic.partitions
        }

    return admin.route_to_leaders(topic_partition_offsets, exchange, deadline)


def delete_records(
    admin: AdminRequests,
    topic_partition_offsets: list[TopicPartition],
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartition, DeletedRecords]]:
    """Deletes all records before the offset of each partition; results are by partition.

    OFFSET_END deletes every record that the partition has.
    """
    require_partitions("topic_partition_offsets", topic_partition_offsets)
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)

    async def exchange(
        leader: int | None, batch: list[TopicPartition]
    ) -> Mapping[TopicPartition, DeletedRecords | KafkaError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=p.partition, offset=p.offset)
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(batch).items()
            ],
            timeout_ms=wait_ms,
        )
        response = await admin.send(request, leader, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition)
            or DeletedRecords(partition.low_watermark)
            for topic in response.topics
            for partition in topic.partitions
        }

    return admin.route_to_leaders(topic_partition_offsets, exchange, deadline)


def _require_specs(specs: object) -> None:
    if not isinstance(specs, dict):
        raise TypeError(f"expected a dict of TopicPartition and OffsetSpec, not {specs!r}")
    for partition, spec in specs.items():
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"{partition!r} is not a TopicPartition")
        if not isinstance(partition.topic, str):
            raise TypeError(f"the topic name {partition.topic!r} is not a string")
        if not partition.topic or partition.partition < 0:
            raise ValueError(f"{partition!r} needs a topic and a partition that is not negative")
        if not isinstance(spec, OffsetSpec):
            raise TypeError(f"{spec!r} is not an OffsetSpec")
