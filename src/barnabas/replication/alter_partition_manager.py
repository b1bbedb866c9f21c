"""Taking to the controller who is in sync: one AlterPartition at a time, for all that changed."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.replication.leadership import NO_BROKER_EPOCH, Brokers, Proposal
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
    from barnabas.replication.leading import LeadingReplica

AskController = Callable[[Message], "asyncio.Future[Message]"]
"""Sends a request to the active controller, wherever that is; OSError or KafkaError if it fails."""

RETRY_S = 0.05

Asked = dict[tuple[bytes, int], tuple["LeadingReplica", Proposal]]

_logger = logging.getLogger(__name__)


class IsrChanges:
    """The proposals of this broker's partitions that the controller has not decided yet."""

    __slots__ = (
        "_ask",
        "_brokers",
        "_clock",
        "_is_asking",
        "_node_id",
        "_unsent",
        "expanded",
        "refused",
        "shrunk",
    )

    def __init__(
        self, node_id: int, ask: AskController, brokers: Brokers, clock: Callable[[], int]
    ) -> None:
        self._node_id = node_id
        self._ask = ask
        self._brokers = brokers
        self._clock = clock
        self._unsent: dict[LeadingReplica, None] = {}
        self._is_asking = False
        self.expanded = 0
        self.shrunk = 0
        self.refused = 0
        """How many proposals came to what, since the start."""

    def propose(self, partition: "LeadingReplica") -> None:
        """Take the partition's proposal along with the next request."""
        self._unsent[partition] = None
        if not self._is_asking:
            self._send()

    def _send(self) -> None:
        asked: Asked = {
            (partition.topic_id, partition.index): (partition, partition.proposal)
            for partition in self._unsent
            if partition.proposal is not None  # or the metadata has overtaken it
        }
        self._unsent.clear()
        self._is_asking = bool(asked)
        if not asked:
            return
        broker = self._brokers(self._node_id)
        epoch = broker.epoch if broker is not None else NO_BROKER_EPOCH
        answer = self._ask(_request(self._node_id, epoch, asked))
        answer.add_done_callback(lambda answer: self._answered(asked, answer))

    def _answered(self, asked: Asked, answer: "asyncio.Future[Message]") -> None:
        """Tell every partition its outcome; what may still be done is asked for once more."""
        try:
            outcomes = _outcomes(answer.result())
        except Exception as failure:
            _logger.warning("Who is in sync could not be told to the controller: %r", failure)
            outcomes = {}
        is_done = True
        for key, (partition, proposal) in asked.items():
            outcome = outcomes.get(key)
            self._count(proposal, outcome)
            if outcome is None or partition.isr_answered(proposal, outcome, self._clock()):
                self._unsent[partition] = None
                is_done = False
        if is_done:
            self._send()
        else:
            answer.get_loop().call_later(RETRY_S, self._send)

    def _count(self, proposal: Proposal, outcome: ResponsePartitionData | None) -> None:
        if outcome is None or outcome.error_code:
            self.refused += 1
        elif proposal.joining is not None:
            self.expanded += 1
        else:
            self.shrunk += 1


def _request(node_id: int, broker_epoch: int, asked: Asked) -> AlterPartitionRequest:
    topics: dict[bytes, list[RequestPartitionData]] = {}
    for (topic_id, index), (_, proposal) in asked.items():
        topics.setdefault(topic_id, []).append(
            RequestPartitionData(
                partition_index=index,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=broker_id, broker_epoch=epoch)
                    for broker_id, epoch in proposal.isr
                ],
                partition_epoch=proposal.partition_epoch,
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


def _outcomes(response: Message) -> dict[tuple[bytes, int], ResponsePartitionData]:
    assert isinstance(response, AlterPartitionResponse)
    if response.error_code:
        _logger.warning(
            "The controller does not take in who is in sync: %s",
            ErrorCode(response.error_code).name,
        )
        return {}
    return {
        (topic.topic_id, partition.partition_index): partition
        for topic in response.topics
        for partition in topic.partitions
    }
