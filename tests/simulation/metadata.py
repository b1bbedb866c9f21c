"""What the controller decides: topics, who leads them, who is in sync, settings, producer ids."""

from typing import Any

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.wire.schema import Message

NODE_ID = 1
OTHER_ID = 2
"""A second replica of everything, which follows as a run wants it to."""

PRODUCER_IDS_A_BLOCK = 10
TOPIC_CONFIG = 2


class Metadata:
    """The image, and the records that change it."""

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
        """`leader` begins a new epoch, even if it is the same; `isr` says who is in sync."""
        topic = self.image.topics.by_name(name)
        assert topic is not None
        return self.change(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=index, **changes)
        )

    def lead_all_anew(self) -> MetadataDelta:
        """The node has come back."""
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
        """The one request that a broker sends to its controller here."""
        start, self._next_producer_id = (
            self._next_producer_id,
            self._next_producer_id + PRODUCER_IDS_A_BLOCK,
        )
        return AllocateProducerIdsResponse(
            producer_id_start=start, producer_id_len=PRODUCER_IDS_A_BLOCK
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
