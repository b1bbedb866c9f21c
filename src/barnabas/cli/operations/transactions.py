"""Transactions: which there are, who writes in them, and ending those that hang."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.topics import topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import TopicCollection
from barnabas.client.admin.producers import ProducerState
from barnabas.client.admin.transactions import (
    AbortTransactionSpec,
    TransactionListing,
    TransactionState,
)
from barnabas.client.errors import KafkaException
from barnabas.client.values import TopicPartition, TopicPartitionTuple


@dataclass(slots=True, frozen=True)
class OpenTransaction:
    """A transaction that a partition holds open."""

    partition: TopicPartitionTuple
    producer: ProducerState

    @property
    def minutes(self) -> int:
        return int((time.time() * 1000 - self.producer.last_timestamp) / 60_000)


async def list_transactions(
    admin: AioAdminClient, duration_ms: int = -1, pattern: str | None = None
) -> list[tuple[int, TransactionListing]]:
    """With the brokers that coordinate them."""
    told = await admin.list_transactions(
        duration_ms=duration_ms, transactional_id_pattern=pattern or None
    )
    return [(broker, each) for broker in sorted(told) for each in told[broker]]


async def describe_producers(
    admin: AioAdminClient, partition: TopicPartitionTuple, broker_id: int | None = None
) -> list[ProducerState]:
    asked = TopicPartition(*partition)
    return (await admin.describe_producers([asked], broker_id=broker_id))[asked]


async def find_transaction(
    admin: AioAdminClient, partition: TopicPartitionTuple, offset: int
) -> AbortTransactionSpec:
    """The transaction that begins at this offset."""
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
    """Open for so long, although no coordinator knows of them: only an abort ends those."""
    if topic is not None and partition is not None:
        searched = [(topic, partition)]
    else:
        topics = [topic] if topic is not None else await topic_names(admin)
        searched = await _partitions_on(admin, topics, broker_id)
    if not searched:
        return []
    asked = [TopicPartition(*each) for each in searched]
    told = await admin.describe_producers(asked, broker_id=broker_id)
    candidates = [
        OpenTransaction((each.topic, each.partition), producer)
        for each, producers in told.all().items()
        for producer in producers
        if producer.current_transaction_start_offset is not None
    ]
    candidates = [each for each in candidates if each.minutes > longer_than_minutes]
    known = await _known_partitions(admin, {each.producer.producer_id for each in candidates})
    return [
        each
        for each in candidates
        if each.partition not in known.get(each.producer.producer_id, ())
    ]


async def _known_partitions(
    admin: AioAdminClient, producer_ids: Iterable[int]
) -> dict[int, set[TopicPartitionTuple]]:
    """Where coordinators know of open transactions of these producers."""
    ids = set(producer_ids)
    if not ids:
        return {}
    listed = await admin.list_transactions(producer_ids=ids)
    known: dict[int, set[TopicPartitionTuple]] = {}
    for each in (listing for broker in listed for listing in listed[broker]):
        try:
            described = (await admin.describe_transactions([each.transactional_id]))[
                each.transactional_id
            ]
        except KafkaException:
            continue  # it has been forgotten since it was listed
        if described.state is TransactionState.ONGOING:
            known[each.producer_id] = {(p.topic, p.partition) for p in described.topic_partitions}
    return known


async def _partitions_on(
    admin: AioAdminClient, topics: list[str], broker_id: int | None
) -> list[TopicPartitionTuple]:
    if not topics:
        return []
    described = (await admin.describe_topics(TopicCollection(topics))).all()
    return [
        (name, each.id)
        for name, topic in described.items()
        for each in topic.partitions
        if broker_id is None or broker_id in (replica.id for replica in each.replicas)
    ]
