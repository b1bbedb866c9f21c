"""Ends transactions in the partitions that this broker leads."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.answer import Answer, all_of
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.ports import Outcomes
from barnabas.log.failures import LogDirFailure
from barnabas.server.purgatory import when_promised
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker

_NOT_READY = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Of the groups' coordinator. Who ends a transaction does not expect these from a partition."""

log = logging.getLogger(__name__)


class LocalParticipants:
    """Writes markers, and answers when all replicas in sync have them."""

    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def end(self, marker: Marker, partitions: Sequence[TopicPartition]) -> Answer[Outcomes]:
        """Write the marker to each of the partitions; by partition, what came of it."""
        codes: Outcomes = {}
        waiting: dict[TopicPartition, Answer[ErrorCode]] = {}
        for place in partitions:
            outcome = self._end_in_one(marker, *place)
            if isinstance(outcome, Answer):
                waiting[place] = outcome
            else:
                codes[place] = outcome
        if not waiting:
            return Answer.of(codes)
        return all_of(list(waiting.values())).map(
            lambda told: codes | dict(zip(waiting, told, strict=True))
        )

    def _end_in_one(self, marker: Marker, topic: str, index: int) -> ErrorCode | Answer[ErrorCode]:
        broker = self._broker
        try:
            partition = broker.partitions.by_name(topic, index)
            if topic == GROUPS_TOPIC:
                # The offsets committed in the transaction are decided with it.
                return _code_of(broker.groups.end_transaction(index, marker))
            appended = partition.end_transaction(marker, now_ms=broker.clock())
        except Exception as error:
            return _code(error)
        answer: Answer[ErrorCode] = Answer()
        when_promised(
            partition,
            appended.last_offset + 1,
            answer.complete,
            purgatory=broker.purgatory,
            timeout_ms=broker.resolver.broker("request.timeout.ms"),
            operation="Produce",
        )
        return answer.result() if answer.is_done else answer


def _code_of(answer: Answer[None]) -> ErrorCode | Answer[ErrorCode]:
    if answer.is_done:
        return _code(answer.error)
    told: Answer[ErrorCode] = Answer()
    answer.then(lambda done: told.complete(_code(done.error)))
    return told


def _code(error: Exception | None) -> ErrorCode:
    match error:
        case None:
            return ErrorCode.NONE
        case KafkaError():
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR
    log.error("a transaction's marker was not written", exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR
