"""Ends transactions in the partitions that this broker leads."""

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.answer import Answer, all_of
from barnabas.coordinator.groups.state import GROUPS_TOPIC
from barnabas.coordinator.marker import Marker
from barnabas.log.failures import LogDirFailure
from barnabas.replication import Partition
from barnabas.replication.partition import ALL_IN_SYNC
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

TopicPartition = tuple[str, int]
Outcomes = dict[TopicPartition, ErrorCode]


class LocalParticipants:
    """Writes markers, and answers when all replicas in sync have them."""

    __slots__ = ("_broker",)

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def end(self, marker: Marker, partitions: Sequence[TopicPartition]) -> Answer[Outcomes]:
        codes = all_of([self._end_in_one(marker, *place) for place in partitions])
        return codes.map(lambda told: dict(zip(partitions, told, strict=True)))

    def _end_in_one(self, marker: Marker, topic: str, index: int) -> Answer[ErrorCode]:
        if topic == GROUPS_TOPIC:
            # The offsets committed in the transaction are the group coordinator's to decide.
            return _code_of(self._broker.groups.end_transaction(index, marker))
        try:
            partition = self._broker.partitions.by_name(topic, index)
            appended = partition.end_transaction(marker, now_ms=self._broker.clock())
        except (KafkaError, LogDirFailure) as error:
            return Answer.of(_code(error))
        return self._when_kept(partition, appended.last_offset + 1)

    def _when_kept(self, partition: Partition, next_offset: int) -> Answer[ErrorCode]:
        def is_kept(_: Hashable = None, __: int = 0) -> bool:
            return partition.has_promised(next_offset, ALL_IN_SYNC)

        if is_kept():
            return Answer.of(ErrorCode.NONE)
        answer: Answer[ErrorCode] = Answer()

        def look_again(_: "asyncio.Future[bool]") -> None:
            if not partition.is_leader:
                answer.complete(partition.failure or ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                answer.complete(ErrorCode.NONE if is_kept() else ErrorCode.REQUEST_TIMED_OUT)

        timeout_ms = self._broker.resolver.broker("request.timeout.ms")
        parked = self._broker.purgatory.park([partition], timeout_ms, is_kept, "Produce")
        parked.add_done_callback(look_again)
        return answer


def _code_of(answer: Answer[None]) -> Answer[ErrorCode]:
    told: Answer[ErrorCode] = Answer()
    answer.then(
        lambda done: told.complete(ErrorCode.NONE if done.error is None else _code(done.error))
    )
    return told


def _code(error: Exception) -> ErrorCode:
    match error:
        case KafkaError():
            return error.code
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.UNKNOWN_SERVER_ERROR
