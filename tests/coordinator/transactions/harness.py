"""A transaction coordinator with simulated partitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.coordinator.environment import CoordinatorEnvironment, Settings

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.records import TRANSACTION_RECORDS
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.metadata.delta import MetadataDelta
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.transaction_records import TransactionLogValue
from barnabas.wire.messages.transactions import EndTxnRequest, EndTxnResponse

BLOCK_SIZE = 1_000
FIRST_ID = 4_000


@dataclass
class Participant:
    """A partition as far as transactions see it: one producer writes to it at a time."""

    epoch: int = -1
    coordinator_epoch: int = -1
    has_open: bool = False
    outcomes: list[bool] = field(default_factory=list)
    """What the markers said that ended an open transaction."""
    markers: list[TransactionMarker] = field(default_factory=list)

    def take(self, marker: TransactionMarker) -> ErrorCode:
        """By the rules of the log."""
        if marker.producer_epoch < self.epoch or (
            marker.transaction_version >= 2
            and self.has_open
            and marker.producer_epoch == self.epoch
        ):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < self.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        self.epoch = marker.producer_epoch
        self.coordinator_epoch = marker.coordinator_epoch
        self.markers.append(marker)
        if self.has_open:
            self.has_open = False
            self.outcomes.append(marker.committed)
        return ErrorCode.NONE


@dataclass
class Request:
    """Markers on their way, which a test lets through or loses."""

    marker: TransactionMarker
    partitions: Sequence[TopicPartition]
    answer: PendingResponse[PartitionErrorCodes]
    is_needed: Callable[[], bool] = lambda: True


class FakeParticipants:
    """Partitions that respond at once, unless a test holds the markers or sets an error."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[int, TopicPartition], Participant] = {}
        """By producer id and partition."""
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.leaders: dict[TopicPartition, int | None] = {}
        """The leader of a partition, if not broker 1: another broker, or None."""
        self.is_holding = False
        self.held: list[Request] = []
        self.requests: list[Request] = []
        self.before_each: Callable[[], None] = lambda: None
        """What happens before a marker is written to a partition."""

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        actual: dict[int, list[TopicPartition]] = {}
        for each in partitions:
            leader = self.leaders.get(each, 1)
            if leader is not None:
                actual.setdefault(leader, []).append(each)
        return actual

    def write_markers(
        self,
        leader: int,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        is_needed: Callable[[], bool],
    ) -> PendingResponse[PartitionErrorCodes]:
        request = Request(marker, partitions, PendingResponse(), is_needed)
        self.requests.append(request)
        if self.is_holding:
            self.held.append(request)
        else:
            self.deliver(request)
        return request.answer

    def deliver(self, request: Request) -> None:
        request.answer.complete(self.write(request))

    def write(self, request: Request) -> PartitionErrorCodes:
        """The markers arrive; the response may still be lost."""
        marker = request.marker
        outcomes: PartitionErrorCodes = {}
        for each in request.partitions:
            self.before_each()
            participant = self.of(marker.producer_id, each)
            outcomes[each] = self.errors.get(each) or participant.take(marker)
        return outcomes

    def of(self, producer_id: int, partition: TopicPartition) -> Participant:
        return self.partitions.setdefault((producer_id, partition), Participant())

    def append(self, producer_id: int, producer_epoch: int, partition: TopicPartition) -> bool:
        """A producer's batch in a transaction; whether its epoch is good enough."""
        participant = self.of(producer_id, partition)
        if producer_epoch < participant.epoch:
            return False
        participant.epoch = producer_epoch
        participant.has_open = True
        return True


class FakeBlocks:
    """Allocates blocks of producer ids, unless a test prevents it."""

    def __init__(self) -> None:
        self.next_id = FIRST_ID
        self.error: Exception | None = None
        self.held: list[PendingResponse[range]] | None = None
        self.request_count = 0

    def allocate(self) -> PendingResponse[range]:
        self.request_count += 1
        if self.error is not None:
            return PendingResponse.failed(self.error)
        if self.held is not None:
            self.held.append(PendingResponse())
            return self.held[-1]
        return PendingResponse.completed(self.block())

    def block(self) -> range:
        block = range(self.next_id, self.next_id + BLOCK_SIZE)
        self.next_id += BLOCK_SIZE
        return block


class TransactionHarness(CoordinatorEnvironment):
    """A coordinator of one shard, with everything it needs."""

    def __init__(self, *, transaction_version: int = 2, **settings: Any) -> None:
        settings.setdefault("transaction_state_log_num_partitions", 1)
        super().__init__(Settings(**settings))
        self.image.features["transaction.version"] = transaction_version
        self.participants = FakeParticipants()
        self.blocks = FakeBlocks()
        self.create_topic("t", 4)
        self.create_topic("__consumer_offsets", 1)
        self.epoch = 0
        self.coordinator = self._new_coordinator()
        self.elect()

    def elect(self) -> None:
        """Becomes the leader, also if it was before: only the log is left."""
        self.log.lose_leadership()
        self.coordinator.runtime.close()
        self.coordinator = self._new_coordinator()
        self.epoch += 1
        self.coordinator.runtime.on_election(0, self.epoch)
        while self.coordinator.runtime.is_loading:
            self.advance(0)

    @property
    def transactions(self) -> TransactionCoordinatorState:
        return self.coordinator.runtime.shard(0).state

    def values(self, transactional_id: str) -> list[TransactionLogValue | None]:
        """What the log says of an id, oldest first."""
        return [
            record.value
            for record in self.log.records(TRANSACTION_RECORDS)
            if record.key.transactional_id == transactional_id
        ]

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            self.settings,
            lambda: self.image,
            participants=self.participants,
            producer_id_blocks=self.blocks,
            group_partition=lambda _: 0,
            open_log=lambda _: self.log,
            timer_service=self.clock,
            clock=lambda: self.clock.now_ms,
        )

    def _publish(self, delta: MetadataDelta) -> None:
        if hasattr(self, "coordinator"):
            self.coordinator.runtime.on_metadata_update(delta, self.image)

    # Requests of clients

    def init(
        self,
        transactional_id: str,
        producer: "Producer | None" = None,
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
    ) -> PendingResponse[InitProducerIdResponse]:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        if producer is not None:
            request.producer_id, request.producer_epoch = producer.producer_id, producer.epoch
        return self.coordinator.init_producer_id(request, version)

    def add(
        self, producer: "Producer", *indexes: int
    ) -> PendingResponse[dict[TopicPartition, ErrorCode]]:
        """As Produce of version 12 does."""
        return self.coordinator.verify_or_add(
            producer.transactional_id,
            producer.producer_id,
            producer.epoch,
            [("t", index) for index in indexes],
            add=True,
        )

    def end(
        self, producer: "Producer", *, committed: bool = True, version: int = 5
    ) -> PendingResponse[EndTxnResponse]:
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        return self.coordinator.end(request, version)

    def producer(self, transactional_id: str = "x", *, timeout_ms: int = 60_000) -> "Producer":
        """A producer that has initialized its transactional id."""
        response = self.init(transactional_id, timeout_ms=timeout_ms).result()
        assert response.error_code == ErrorCode.NONE, ErrorCode.of(response.error_code)
        return Producer(transactional_id, response.producer_id, response.producer_epoch)

    def state_of(self, transactional_id: str = "x") -> str:
        return self.transactions.by_id[transactional_id].state.title


@dataclass(frozen=True)
class Producer:
    """A transactional producer as it knows itself."""

    transactional_id: str
    producer_id: int
    epoch: int

    def after(self, response: InitProducerIdResponse | EndTxnResponse) -> "Producer":
        """Itself with the id and epoch that it was given."""
        return replace(self, producer_id=response.producer_id, epoch=response.producer_epoch)
