"""Produce, Fetch and ListOffsets requests of one topic."""

from collections.abc import Sequence

from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.uuid import ZERO


def produce(
    topic: str,
    *batches: bytes | None,
    partition: int = 0,
    acks: int = -1,
    topic_id: bytes = ZERO,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Returns a Produce request; each batch is a separate entry of the partition."""
    produced = [PartitionProduceData(index=partition, records=batch) for batch in batches]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=produced)],
    )


def fetch(
    topic: str,
    *,
    topic_id: bytes = ZERO,
    offset: int = 0,
    partitions: Sequence[int] = (0,),
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    max_bytes: int = 1_000_000,
    partition_max_bytes: int = 1_000_000,
    max_wait_ms: int = 0,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    replica_id: int = -1,
) -> FetchRequest:
    requested = [
        FetchPartition(
            partition=index,
            fetch_offset=offset,
            current_leader_epoch=leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
            partition_max_bytes=partition_max_bytes,
        )
        for index in partitions
    ]
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=requested)],
    )


def list_offsets(
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    leader_epoch: int = -1,
    isolation_level: int = 0,
    replica_id: int = -1,
) -> ListOffsetsRequest:
    requested = ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp
    )
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=topic, partitions=[requested])],
        timeout_ms=5000,
    )
