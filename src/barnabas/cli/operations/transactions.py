"""Transactions: listing them, describing producers, and finding hanging ones."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.topics import topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import TopicCollection
from barnabas.client.admin.partitions import ProducerState
from barnabas.client.admin.transactions import (
    AbortTransactionSpec,
    TransactionListing,
    TransactionState,
)
from barnabas.client.errors import KafkaException
from barnabas.client.values import PartitionKey, TopicPartition


@dataclass(slots=True, frozen=True)
class OpenTransaction:
    """A transaction that is open on a partition."""

    partition: PartitionKey
    producer: ProducerState

    @property
    def minutes(self) -> int:
        return int((time.time() * 1000 - self.producer.last_timestamp) / 60_000)


async def list_transactions(
    admin: AioAdminClient, duration_ms: int = -1, pattern: str | None = None
) -> list[tuple[int, TransactionListing]]:
    """Returns transactions with the broker ids of their coordinators."""
    response = await admin.list_transactions(
        duration_ms=duration_ms, transactional_id_pattern=pattern or None
    )
    return [(broker, listing) for broker in sorted(response) for listing in response[broker]]


async def describe_producers(
    admin: AioAdminClient, partition: PartitionKey, broker_id: int | None = None
) -> list[ProducerState]:
    topic_partition = TopicPartition(*partition)
    return (await admin.describe_producers([topic_partition], broker_id=broker_id))[topic_partition]


async def find_transaction(
    admin: AioAdminClient, partition: PartitionKey, offset: int
) -> AbortTransactionSpec:
    """Returns the transaction that starts at this offset."""
    for producer in await describe_producers(admin, partition):
        if producer.current_transaction_start_offset == offset:
            return AbortTransactionSpec(
                TopicPartition(*partition),
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
            )
    raise CommandError(
        f"Could not find any open transactions starting at offset {offset} on partition "
        f"{partition[0]}-{partition[1]}"
    )


async def find_hanging_transactions(
    admin: AioAdminClient,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    longer_than_minutes: int,
) -> list[OpenTransaction]:
    """Returns transactions open for longer, which no coordinator knows: only an abort ends them."""
    if topic is not None and partition is not None:
        searched = [(topic, partition)]
    else:
        topics = [topic] if topic is not None else await topic_names(admin)
        searched = await _partitions_on(admin, topics, broker_id)
    if not searched:
        return []
    topic_partitions = [TopicPartition(*partition) for partition in searched]
    response = await admin.describe_producers(topic_partitions, broker_id=broker_id)
    candidates = [
        OpenTransaction((topic_partition.topic, topic_partition.partition), producer)
        for topic_partition, producers in response.all().items()
        for producer in producers
        if producer.current_transaction_start_offset is not None
    ]
    candidates = [candidate for candidate in candidates if candidate.minutes > longer_than_minutes]
    ongoing = await _ongoing_partitions(
        admin, {candidate.producer.producer_id for candidate in candidates}
    )
    return [
        candidate
        for candidate in candidates
        if candidate.partition not in ongoing.get(candidate.producer.producer_id, ())
    ]


async def _ongoing_partitions(
    admin: AioAdminClient, producer_ids: Iterable[int]
) -> dict[int, set[PartitionKey]]:
    """Returns the partitions of ongoing transactions of producers, as coordinators know them."""
    ids = set(producer_ids)
    if not ids:
        return {}
    listed = await admin.list_transactions(producer_ids=ids)
    ongoing: dict[int, set[PartitionKey]] = {}
    for listing in (listing for broker in listed for listing in listed[broker]):
        try:
            described = (await admin.describe_transactions([listing.transactional_id]))[
                listing.transactional_id
            ]
        except KafkaException:
            continue  # it has expired since it was listed
        if described.state is TransactionState.ONGOING:
            ongoing[listing.producer_id] = {
                (p.topic, p.partition) for p in described.topic_partitions
            }
    return ongoing


async def _partitions_on(
    admin: AioAdminClient, topics: list[str], broker_id: int | None
) -> list[PartitionKey]:
    if not topics:
        return []
    described = (await admin.describe_topics(TopicCollection(topics))).all()
    return [
        (name, partition.id)
        for name, topic in described.items()
        for partition in topic.partitions
        if broker_id is None or broker_id in (replica.id for replica in partition.replicas)
    ]
