"""The sender: which batches go to which node now, and what happens to them. No I/O, no clock.

`step` returns the requests to send; `on_response` and `on_network_error` receive their outcome.
Batches that are done are in `completed`. The batches of a partition arrive in order: up to five
requests are in flight to a node, and after a failure the batches of the partition are sent again
one at a time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.client.cluster import Backoff, MetadataSnapshot
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.producer._queues import PartitionQueue
from barnabas.client.producer.batch_finisher import BatchFinisher, ProducerIdAndEpoch
from barnabas.client.producer.in_flight_batches import InFlightBatches
from barnabas.client.producer.produce_request import (
    BatchAction,
    InFlightProduce,
    PartitionResponse,
    action_for,
)
from barnabas.client.producer.transaction import ProducerTransaction
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode

MAX_EPOCH = 0x7FFF
_EXPIRY_CHECKS = 10


@dataclass(slots=True)
class _Step:
    """What one call of `Sender.step` has collected."""

    now_s: float
    wake_times_s: list[float]
    requests: list[InFlightProduce] = field(default_factory=list)
    open_requests: dict[int, InFlightProduce] = field(default_factory=dict)  # by node


class Sender:
    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: RecordAccumulator,
        transaction: ProducerTransaction | None = None,
    ) -> None:
        self._accumulator = accumulator
        self._transaction = transaction
        self._is_idempotent = settings.enable_idempotence
        self._max_in_flight = settings.max_in_flight
        self._retries = settings.retries
        self._max_request_bytes = max(settings.max_request_size, settings.batch_size)
        self._delivery_timeout_s = settings.delivery_timeout_ms / 1000
        self._availability_timeout_s = settings.availability_timeout_ms / 1000
        self._backoff_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        self._finisher = BatchFinisher.from_settings(settings)
        self._partitions: dict[PartitionKey, InFlightBatches] = {}
        self._retrying: set[PartitionKey] = set()  # partitions with batches to send again
        self._in_flight: dict[int, set[InFlightProduce]] = {}  # by node
        self._throttled_until_s: dict[int, float] = {}
        self._metadata = MetadataSnapshot()
        self._leader_hints: dict[PartitionKey, tuple[int, int]] = {}  # node and epoch
        self._next_expiry_s = 0.0
        self._rotation = 0
        self.producer = ProducerIdAndEpoch.NONE
        self.completed: list[ProducerBatch] = []
        self.needs_metadata = False  # the present metadata proved wrong
        self.fatal_error: KafkaError | None = None

    @property
    def needs_producer_id(self) -> bool:
        """Whether a producer id has to be requested before anything can be sent."""
        return (
            self._is_idempotent
            and self.producer is ProducerIdAndEpoch.NONE
            and self.fatal_error is None
        )

    @property
    def requests_in_flight(self) -> int:
        return sum(map(len, self._in_flight.values()))

    @property
    def is_drained(self) -> bool:
        """Whether no batch is without an outcome."""
        return all(partition.is_idle for partition in self._partitions.values())

    @property
    def has_gaps(self) -> bool:
        """Whether the sequences of some partition cannot be used any more under this epoch."""
        return any(
            partition.has_gap or partition.is_out_of_order
            for partition in self._partitions.values()
        )

    def set_producer_id(self, producer: ProducerIdAndEpoch) -> None:
        """Uses an id, or another epoch of it, that a coordinator has assigned."""
        self.producer = producer

    def update_metadata(self, metadata: MetadataSnapshot) -> None:
        self._metadata = metadata
        for topic_partition, (_, epoch) in list(self._leader_hints.items()):
            info = metadata.leader(*topic_partition)
            if info is None or info.leader_epoch >= epoch:
                del self._leader_hints[topic_partition]
        for topic_partition in self._retrying:
            partition, info = self._partitions[topic_partition], metadata.leader(*topic_partition)
            if info is not None and info.leader >= 0 and info.leader != partition.node_id:
                partition.retry_at_s = 0.0  # the backoff was for the old leader

    # Sending

    def step(self, now_s: float) -> tuple[list[InFlightProduce], float | None]:
        """Returns the requests to send now, and when to step again if nothing else happens."""
        if now_s >= self._next_expiry_s:
            self._expire(now_s)
        queues, due_s = self._accumulator.ready(now_s)
        step = _Step(now_s, [self._next_expiry_s] if self._accumulator.buffered_records else [])
        if due_s is not None:
            step.wake_times_s.append(due_s)
        if self.fatal_error is None and not self.needs_producer_id:
            for topic_partition in sorted(self._retrying):
                self._send_again(self._partitions[topic_partition], step)
            self._rotation = (self._rotation + 1) % max(1, len(queues))
            queues = queues[self._rotation :] + queues[: self._rotation]
            while queues:
                # A request has one batch of a partition: further ones go into the next request.
                queues = [queue for queue in queues if self._send_next(queue, step)]
                step.open_requests = {}
        return step.requests, min((at for at in step.wake_times_s if at > now_s), default=None)

    def _send_again(self, partition: InFlightBatches, step: _Step) -> None:
        if partition.needs_new_epoch and not self._start_epoch(partition):
            return
        if not partition.retrying:
            self._retrying.discard(partition.topic_partition)
            return
        if partition.in_flight:
            return
        if partition.retry_at_s > step.now_s:
            step.wake_times_s.append(partition.retry_at_s)
            return
        batch = partition.retrying[0]
        request = self._request_for(partition, batch.size_bytes, step)
        if request is not None:
            del partition.retrying[0]
            self._add_to_request(partition, batch, request)

    def _send_next(self, queue: PartitionQueue, step: _Step) -> bool:
        """Sends the first batch of a queue if possible. Returns whether another may follow."""
        topic_partition = queue.topic_partition
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = InFlightBatches(topic_partition)
        if partition.retry_at_s > step.now_s:
            step.wake_times_s.append(partition.retry_at_s)
            return False
        if not self._accumulator.is_due(queue, step.now_s) or not self._can_send_new(partition):
            return False
        request = self._request_for(partition, queue.first_batch_bytes, step)
        if request is None:
            leader = self._leader(topic_partition)
            step.wake_times_s.append(self._throttled_until_s.get(leader, 0.0))
            self._note_blocked(queue, partition, step.now_s)
            return False
        batch = self._accumulator.take_batch(queue)
        assert batch is not None, "only the loop takes batches, and this queue has one"
        if partition.blocked_since_s is not None:
            partition.blocked_since_s = None
            self._accumulator.set_unavailable(queue, False)
        partition.add(batch, self._finisher)
        self._add_to_request(partition, batch, request)
        return True

    def _can_send_new(self, partition: InFlightBatches) -> bool:
        """Returns whether a new batch may follow those that were sent before."""
        if self._transaction is not None and not self._transaction.may_send_to(
            partition.topic_partition
        ):
            return False
        if not partition.can_send_new:
            return False
        if partition.needs_new_epoch and not self._start_epoch(partition):
            return False
        if partition.has_gap:
            return False
        if partition.producer != self.producer:
            if partition.in_flight:
                return False
            partition.start_epoch(self.producer, self._finisher)
        return True

    def _start_epoch(self, partition: InFlightBatches) -> bool:
        """Moves a partition to an epoch without sequences (KIP-360), if there is one yet."""
        if self._is_idempotent and partition.producer == self.producer:
            if self._transaction is not None:
                return False
            if self.producer.epoch >= MAX_EPOCH:
                self.producer = ProducerIdAndEpoch.NONE
                return False
            self.producer = ProducerIdAndEpoch(self.producer.producer_id, self.producer.epoch + 1)
        producer = self.producer if self._is_idempotent else ProducerIdAndEpoch.NONE
        partition.start_epoch(producer, self._finisher)
        return True

    def _request_for(
        self, partition: InFlightBatches, size_bytes: int, step: _Step
    ) -> InFlightProduce | None:
        """Returns the request to the leader that can take a batch; None if it has to wait."""
        node_id = self._leader(partition.topic_partition)
        if node_id < 0 or (partition.in_flight and partition.node_id != node_id):
            return None
        request = step.open_requests.get(node_id)
        if (
            request is not None
            and partition.topic_partition not in request.batches
            and request.size_bytes + size_bytes < self._max_request_bytes
        ):
            return request
        in_flight = self._in_flight.setdefault(node_id, set())
        throttled_until_s = self._throttled_until_s.get(node_id, 0)
        if len(in_flight) >= self._max_in_flight or throttled_until_s > step.now_s:
            return None
        request = step.open_requests[node_id] = InFlightProduce(node_id, step.now_s)
        in_flight.add(request)
        step.requests.append(request)
        return request

    def _add_to_request(
        self, partition: InFlightBatches, batch: ProducerBatch, request: InFlightProduce
    ) -> None:
        batch.attempts += 1
        partition.node_id = request.node_id
        partition.in_flight.append(batch)
        request.batches[partition.topic_partition] = batch
        request.size_bytes += batch.size_bytes

    def _leader(self, topic_partition: PartitionKey) -> int:
        hint = self._leader_hints.get(topic_partition)
        if hint is not None and hint[0] in self._metadata.brokers:
            return hint[0]
        info = self._metadata.leader(*topic_partition)
        if info is None or info.leader < 0:
            self.needs_metadata = True
            return -1
        return info.leader

    def _note_blocked(
        self, queue: PartitionQueue, partition: InFlightBatches, now_s: float
    ) -> None:
        if partition.blocked_since_s is None:
            partition.blocked_since_s = now_s
        elif (
            self._availability_timeout_s
            and now_s - partition.blocked_since_s >= self._availability_timeout_s
        ):
            self._accumulator.set_unavailable(queue, True)

    # Responses

    def on_response(
        self,
        request: InFlightProduce,
        responses: Mapping[PartitionKey, PartitionResponse],
        now_s: float,
        throttle_ms: int = 0,
    ) -> None:
        if throttle_ms > 0:
            self._throttled_until_s[request.node_id] = now_s + throttle_ms / 1000
        missing = PartitionResponse(
            ErrorCode.UNKNOWN_SERVER_ERROR, message="the response lacks the partition"
        )
        for partition, batch in self._land(request):
            response = responses.get(partition.topic_partition, missing)
            if response.leader is not None:
                self._take_leader_hint(partition.topic_partition, response.leader)
            self._apply_response(partition, batch, response, now_s)

    def on_network_error(self, request: InFlightProduce, error: KafkaError, now_s: float) -> None:
        """There is no response: whether the batches were appended is not known."""
        self.needs_metadata = True
        for partition, batch in self._land(request):
            batch.may_be_appended = True
            self._retry(partition, batch, error, now_s)

    def on_sent_without_acks(self, request: InFlightProduce) -> None:
        """With acks=0 there is no response: a batch that was sent is done."""
        for partition, batch in self._land(request):
            self._complete(partition, batch)

    def _land(self, request: InFlightProduce) -> Iterator[tuple[InFlightBatches, ProducerBatch]]:
        """Takes a request out of those in flight, and yields its batches as it does the same."""
        self._in_flight[request.node_id].discard(request)
        for topic_partition, batch in request.batches.items():
            partition = self._partitions[topic_partition]
            partition.in_flight.remove(batch)
            yield partition, batch

    def _apply_response(
        self,
        partition: InFlightBatches,
        batch: ProducerBatch,
        response: PartitionResponse,
        now_s: float,
    ) -> None:
        error = broker_error(response.error, response.message)
        match action_for(response.error):
            case BatchAction.COMPLETE:
                partition.failures = 0
                partition.is_established = True
                self._complete(partition, batch, response.base_offset, response.append_time_ms)
            case BatchAction.RETRY_ON_LEADER:
                has_moved = self._leader(partition.topic_partition) != partition.node_id
                if not has_moved:
                    self.needs_metadata = True
                self._retry(partition, batch, error, now_s, at_once=has_moved)
            case BatchAction.RETRY_MAYBE_APPENDED:
                batch.may_be_appended = True
                self._retry(partition, batch, error, now_s)
            case BatchAction.RETRY:
                self._retry(partition, batch, error, now_s)
            case BatchAction.SPLIT if _can_be_split(batch):
                partition.retry_in_parts(batch, self._finisher.split(batch), self._finisher)
                self._retrying.add(partition.topic_partition)
            case BatchAction.OUT_OF_ORDER if self._is_idempotent:
                self._on_out_of_order(partition, batch, error, now_s)
            case BatchAction.FENCED:
                self.fail_fatally(KafkaError(error.code(), error.str(), fatal=True))
                self._fail(partition, batch, error)
            case _:
                self._fail(partition, batch, error)

    def _on_out_of_order(
        self, partition: InFlightBatches, batch: ProducerBatch, error: KafkaError, now_s: float
    ) -> None:
        """The broker misses a batch before this one.

        An earlier batch may still arrive, if it is sent again. If there is none, it was lost or has
        failed: then neither this batch nor a later one was appended, and all of them are sent again
        under another epoch.
        """
        if not partition.is_first(batch):
            self._retry(partition, batch, error, now_s)
        elif self._transaction is not None:
            self._fail(partition, batch, error)
        else:
            partition.is_out_of_order = True
            self._retry(partition, batch, error, now_s, at_once=True)

    def _retry(
        self,
        partition: InFlightBatches,
        batch: ProducerBatch,
        error: KafkaError,
        now_s: float,
        *,
        at_once: bool = False,
    ) -> None:
        self._retrying.add(partition.topic_partition)
        if batch.is_done:
            return
        if batch.attempts > self._retries:
            self._fail(partition, batch, error)
            return
        if not at_once:
            backoff = Backoff(*self._backoff_ms, failures=partition.failures)
            partition.retry_at_s = max(partition.retry_at_s, now_s + backoff.next_ms() / 1000)
            partition.failures += 1
        partition.retry(batch)

    def _take_leader_hint(self, topic_partition: PartitionKey, leader: tuple[int, int]) -> None:
        info = self._metadata.leader(*topic_partition)
        epoch = max(
            -1 if info is None else info.leader_epoch,
            self._leader_hints.get(topic_partition, (-1, -1))[1],
        )
        if leader[1] > epoch:
            self._leader_hints[topic_partition] = leader
            if leader[0] not in self._metadata.brokers:
                self.needs_metadata = True

    # Outcomes

    def purge(self, queued: KafkaError | None, in_flight: KafkaError | None) -> None:
        """Fails the batches in flight and those not sent yet, each with its error."""
        if in_flight is not None:
            self._fail_retrying(in_flight)
            for partition in self._partitions.values():
                for batch in partition.in_flight:
                    self._fail(partition, batch, in_flight)
        if queued is not None:
            self.fail_unsent(self._accumulator.purge(), queued)

    def fail_unsent(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        """Fails batches that come from the accumulator and have no sequence yet."""
        for batch in batches:
            batch.fail(error)
        self.completed += batches

    def fail_fatally(self, error: KafkaError) -> None:
        """Fails everything that is not in flight. Nothing more can be sent by this producer."""
        self.fatal_error = error
        self._fail_retrying(error)
        self.fail_unsent(self._accumulator.purge(), error)

    def _fail_retrying(self, error: KafkaError) -> None:
        for partition in self._partitions.values():
            for batch in partition.retrying:
                self._fail(partition, batch, error)
            partition.retrying.clear()

    def _expire(self, now_s: float) -> None:
        self._next_expiry_s = now_s + min(1.0, self._delivery_timeout_s / _EXPIRY_CHECKS)
        before_s = now_s - self._delivery_timeout_s
        error = KafkaError(
            KafkaError._MSG_TIMED_OUT,
            f"not delivered within delivery.timeout.ms ({self._delivery_timeout_s:g} s)",
        )
        expired = self._accumulator.expired_batches(before_s)
        if expired and self._transaction is not None:
            self._transaction.on_batch_failed(error)
        self.fail_unsent(expired, error)
        for partition in self._partitions.values():
            for batch in list(partition.unresolved()):
                if batch.created_s < before_s:
                    self._fail(partition, batch, error)
            partition.retrying = [batch for batch in partition.retrying if not batch.is_done]

    def _fail(self, partition: InFlightBatches, batch: ProducerBatch, error: KafkaError) -> None:
        if batch.is_done:
            return
        batch.fail(error)
        if self._is_idempotent:
            partition.has_gap = True
            self._retrying.add(partition.topic_partition)
        if self._transaction is not None:
            self._transaction.on_batch_failed(error)
        self.completed += partition.take_reportable(batch)

    def _complete(
        self,
        partition: InFlightBatches,
        batch: ProducerBatch,
        base_offset: int = -1,
        append_time_ms: int = -1,
    ) -> None:
        if not batch.is_done:
            batch.complete(base_offset, append_time_ms)
            # The batches of a partition are reported in their order, whatever order they end in.
            self.completed += partition.take_reportable(batch)


def _can_be_split(batch: ProducerBatch) -> bool:
    """The broker would not recognize parts of a batch as duplicates of it."""
    return batch.record_count > 1 and not batch.is_done and not batch.may_be_appended
