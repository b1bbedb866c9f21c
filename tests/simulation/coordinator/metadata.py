"""The controller of the simulation: topics, leaders, ISRs, settings and producer ids."""

from typing import Any

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.wire.schema import Message

NODE_ID = 1
OTHER_ID = 2
"""The second replica of every partition, which fetches when the run lets it."""

PRODUCER_ID_BLOCK_SIZE = 10
TOPIC_CONFIG = 2


class Metadata:
    """The metadata image, and the records that change it."""

    def __init__(self, *, transaction_version: int) -> None:
        self.image = MetadataImage()
        self._next_producer_id = 1_000
        self.change(
            records.RegisterBrokerRecord(
                broker_id=NODE_ID,
                broker_epoch=1,
                end_points=[records.BrokerEndpoint(name="PLAINTEXT", host="here", port=9092)],
                fenced=False,
            ),
            records.FeatureLevelRecord(
                name="transaction.version", feature_level=transaction_version
            ),
            records.FeatureLevelRecord(name="group.version", feature_level=1),
        )

    def change(self, *changes: Message) -> MetadataDelta:
        self.image = self.image.copy()
        delta = MetadataDelta()
        for record in changes:
            self.image.apply(record, delta)
        self.image.offset += len(changes)
        return delta

    def create_topic(self, name: str, partitions: int) -> MetadataDelta:
        topic_id = name.encode().ljust(16, b"\1")[:16]
        return self.change(
            records.TopicRecord(name=name, topic_id=topic_id),
            *(_partition(topic_id, index) for index in range(partitions)),
        )

    def add_partition(self, name: str) -> MetadataDelta:
        topic = self.image.topics.by_name(name)
        assert topic is not None
        return self.change(_partition(topic.topic_id, len(topic.partitions)))

    def change_partition(self, name: str, index: int, **changes: Any) -> MetadataDelta:
        """A `leader` begins a new leader epoch, even if it is the same broker."""
        topic = self.image.topics.by_name(name)
        assert topic is not None
        return self.change(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index, **changes)
        )

    def elect_all(self) -> MetadataDelta:
        """Elects this broker for every partition, after a restart."""
        return self.change(
            *(
                records.PartitionChangeRecord(
                    topic_id=topic.topic_id, partition_id=index, leader=NODE_ID
                )
                for topic in self.image.topics
                for index in topic.partitions
            )
        )

    def configure(self, topic: str, name: str, value: str) -> MetadataDelta:
        return self.change(
            records.ConfigRecord(
                resource_type=TOPIC_CONFIG, resource_name=topic, name=name, value=value
            )
        )

    async def handle(
        self, request: AllocateProducerIdsRequest, *, timeout_ms: int
    ) -> AllocateProducerIdsResponse:
        """Handles the only request that a broker sends to its controller here."""
        start, self._next_producer_id = (
            self._next_producer_id,
            self._next_producer_id + PRODUCER_ID_BLOCK_SIZE,
        )
        return AllocateProducerIdsResponse(
            producer_id_start=start, producer_id_len=PRODUCER_ID_BLOCK_SIZE
        )


def _partition(topic_id: bytes, index: int) -> records.PartitionRecord:
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=[NODE_ID, OTHER_ID],
        isr=[NODE_ID],
        leader=NODE_ID,
        directories=[bytes(15) + b"\1"] * 2,
    )
