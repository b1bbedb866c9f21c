"""Requests of transactional producers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.dialog import Dialog
from tests.conformance.side_by_side.requests import produce
from tests.conformance.side_by_side.sides import is_encodable

from barnabas.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
)
from barnabas.wire.schema import Message

FIRST_BATCHED_ADD = 4
"""The first version of AddPartitionsToTxn with several transactions, for brokers only."""

FIRST_ADDING_PRODUCE = 12
"""The first version of Produce that adds the partition to the transaction (KIP-890)."""


def init(
    transactional_id: str | None,
    *,
    timeout_ms: int = 60_000,
    producer_id: int = -1,
    epoch: int = -1,
) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


@dataclass(slots=True)
class Producer:
    """A transactional producer: its ids and its requests."""

    transactional_id: str
    producer_id: int
    epoch: int

    def with_changes(self, **changes: Any) -> "Producer":
        """Returns this producer with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return Producer(**(fields | changes))

    def init(self) -> InitProducerIdRequest:
        return init(self.transactional_id, producer_id=self.producer_id, epoch=self.epoch)

    def add(
        self, version: int, *topics: str, partitions: Sequence[int] = (0,), verify: bool = False
    ) -> AddPartitionsToTxnRequest:
        added = [
            AddPartitionsToTxnTopic(name=topic, partitions=list(partitions)) for topic in topics
        ]
        if version >= FIRST_BATCHED_ADD:
            return AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=self.transactional_id,
                        producer_id=self.producer_id,
                        producer_epoch=self.epoch,
                        verify_only=verify,
                        topics=added,
                    )
                ]
            )
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=added,
        )

    def add_group(self, group: str) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )

    def commit_offsets(
        self,
        group: str,
        offset: int = 5,
        *,
        topic: str = PLAIN,
        partitions: Sequence[int] = (0,),
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
    ) -> TxnOffsetCommitRequest:
        committed = [
            TxnOffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            for partition in partitions
        ]
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=committed)],
        )

    def produce(self, topic: str, sequence: int, *, topic_id: bytes = bytes(16)) -> Any:
        records = batch(
            2,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return produce(topic, records, topic_id=topic_id, transactional_id=self.transactional_id)

    def end(self, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )


def new_producer(
    dialog: Dialog,
    transactional_id: str,
    alias: str = "producer",
    *,
    version: int = 5,
    **fields: Any,
) -> Producer:
    response = dialog.send_with_retries(init(transactional_id, **fields), version)
    dialog.set_alias(response.producer_id, alias)
    return Producer(transactional_id, response.producer_id, response.producer_epoch)


def marker(
    producer_id: int,
    epoch: int,
    topic: str,
    *,
    partitions: Sequence[int] = (0,),
    committed: bool = True,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=committed,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))],
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
        ]
    )


def in_all_versions(dialog: Dialog, build: Callable[[int], Message], *, start: int = 0) -> None:
    for version in dialog.supported_versions(build(-1)):
        if version >= start and is_encodable(request := build(version), version):
            dialog.send_with_retries(request, version)


def invalid_producers(producer: Producer) -> list[Producer]:
    """Returns variants of a producer with one wrong field."""
    return [
        producer.with_changes(transactional_id="unknown-to-both"),
        producer.with_changes(transactional_id=""),
        producer.with_changes(producer_id=producer.producer_id + 4711),
        producer.with_changes(producer_id=-1),
        producer.with_changes(epoch=producer.epoch + 1),
        producer.with_changes(epoch=producer.epoch - 1),
        producer.with_changes(epoch=-1),
    ]


def describe(dialog: Dialog, *transactional_ids: str) -> None:
    dialog.send_with_retries(DescribeTransactionsRequest(transactional_ids=list(transactional_ids)))
