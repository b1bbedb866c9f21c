"""Sends ISR changes to the controller: one AlterPartition request at a time, for all partitions."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.metadata.states import BrokerRegistration
from barnabas.replication.leader_state import NO_BROKER_EPOCH, PendingIsrChange
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
    ResponsePartitionData,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

SendToController = Callable[[Message], "asyncio.Future[Message]"]
"""Sends a request to the active controller; the future raises OSError or KafkaError."""

Brokers = Callable[[int], BrokerRegistration | None]
"""Returns a broker of the cluster by its id."""

RETRY_S = 0.05

SentChanges = dict[tuple[bytes, int], tuple["Partition", PendingIsrChange]]

_logger = logging.getLogger(__name__)


class AlterPartitionManager:
    """The ISR changes of this broker's partitions that the controller has not decided yet."""

    __slots__ = (
        "_brokers",
        "_clock",
        "_is_in_flight",
        "_node_id",
        "_send_to_controller",
        "_unsent",
        "expanded",
        "failed",
        "shrunk",
    )

    def __init__(
        self,
        node_id: int,
        send_to_controller: SendToController,
        brokers: Brokers,
        clock: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._send_to_controller = send_to_controller
        self._brokers = brokers
        self._clock = clock
        self._unsent: dict[Partition, None] = {}
        self._is_in_flight = False
        self.expanded = 0
        self.shrunk = 0
        self.failed = 0
        """How many changes succeeded or failed, since the start."""

    def submit(self, partition: "Partition") -> None:
        """Includes the partition's pending change in the next request."""
        self._unsent[partition] = None
        if not self._is_in_flight:
            self._send()

    def _send(self) -> None:
        sent: SentChanges = {
            (partition.topic_id, partition.index): (partition, change)
            for partition in self._unsent
            if (change := _pending_change(partition)) is not None  # or the metadata was faster
        }
        self._unsent.clear()
        self._is_in_flight = bool(sent)
        if not sent:
            return
        broker = self._brokers(self._node_id)
        epoch = broker.epoch if broker is not None else NO_BROKER_EPOCH
        response = self._send_to_controller(_request(self._node_id, epoch, sent))
        response.add_done_callback(lambda response: self._on_response(sent, response))

    def _on_response(self, sent: SentChanges, response: "asyncio.Future[Message]") -> None:
        """Gives every partition its result; changes that may still succeed are sent again."""
        try:
            results = _results(response.result())
        except Exception as failure:
            _logger.warning("An ISR change did not reach the controller: %r", failure)
            results = {}
        is_done = True
        for key, (partition, change) in sent.items():
            result = results.get(key)
            self._count(change, result)
            leader_state = partition.leader_state
            if result is None or (
                leader_state is not None
                and leader_state.on_alter_partition_response(change, result, self._clock())
            ):
                self._unsent[partition] = None
                is_done = False
        if is_done:
            self._send()
        else:
            response.get_loop().call_later(RETRY_S, self._send)

    def _count(self, change: PendingIsrChange, result: ResponsePartitionData | None) -> None:
        if result is None or result.error_code:
            self.failed += 1
        elif change.joining is not None:
            self.expanded += 1
        else:
            self.shrunk += 1


def _pending_change(partition: "Partition") -> PendingIsrChange | None:
    leader_state = partition.leader_state
    return leader_state.pending_isr_change if leader_state is not None else None


def _request(node_id: int, broker_epoch: int, sent: SentChanges) -> AlterPartitionRequest:
    topics: dict[bytes, list[RequestPartitionData]] = {}
    for (topic_id, index), (_, change) in sent.items():
        topics.setdefault(topic_id, []).append(
            RequestPartitionData(
                partition_index=index,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=broker_id, broker_epoch=epoch)
                    for broker_id, epoch in change.isr
                ],
                partition_epoch=change.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=node_id,
        broker_epoch=broker_epoch,
        topics=[
            RequestTopicData(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )


def _results(response: Message) -> dict[tuple[bytes, int], ResponsePartitionData]:
    assert isinstance(response, AlterPartitionResponse)
    if response.error_code:
        _logger.warning(
            "The controller rejected ISR changes: %s", ErrorCode(response.error_code).name
        )
        return {}
    return {
        (topic.topic_id, partition.partition_index): partition
        for topic in response.topics
        for partition in topic.partitions
    }
