"""The sender, stepped without a socket: what it sends, and what it makes of the responses."""

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.cluster import BrokerInfo, MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.errors import KafkaError
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._producer_base import ProducerBase
from barnabas.client.producer.batch_finisher import BatchFinisher, ProducerIdAndEpoch
from barnabas.client.producer.produce_request import InFlightProduce, PartitionResponse
from barnabas.client.producer.sender import Sender
from barnabas.client.settings import ProducerSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.batch import check_crcs, read_header
from barnabas.wire.records.read import read_records

TRANSPORT = KafkaError(KafkaError._TRANSPORT, "it hung up")


class World:
    """A sender with its accumulator, on a clock that the test moves."""

    def __init__(self, partitions: int = 1, nodes: int = 1, **changed: Any) -> None:
        self.settings = ProducerSettings(
            **{"batch_size": 1000, "linger_ms": 0, "delivery_timeout_ms": 100_000, **changed}
        )
        self.accumulator = RecordAccumulator(
            lambda: None,
            max_records=10**6,
            max_bytes=10**9,
            max_record_bytes=10**6,
            batch_bytes=self.settings.batch_size,
            batch_records=5,
            linger_s=self.settings.linger_ms / 1000,
        )
        self.producer = ProducerBase(self.accumulator)
        self.sender = Sender(self.settings, self.accumulator)
        if self.settings.enable_idempotence:
            self.sender.set_producer_id(ProducerIdAndEpoch(7, 0))
        self.nodes = nodes
        self.epoch = 0
        self.leaders = [index % nodes for index in range(partitions)]
        self.now_s = time.monotonic()
        self.update_metadata()
        self.accumulator.update_topic("t", partitions, range(partitions))

    def update_metadata(self) -> None:
        self.epoch += 1
        infos = tuple(
            PartitionInfo(index, leader, self.epoch) for index, leader in enumerate(self.leaders)
        )
        brokers = {node: BrokerInfo(node, "h", node) for node in range(self.nodes)}
        self.sender.update_metadata(
            MetadataSnapshot(brokers=brokers, topics={"t": TopicInfo("t", partitions=infos)})
        )

    def produce(self, *values: int, partition: int = 0) -> None:
        for value in values:
            self.producer.produce("t", b"%d" % value, partition=partition)

    def step(self, later_s: float = 0.001) -> list[InFlightProduce]:
        self.now_s = max(self.now_s + later_s, time.monotonic() + later_s)
        return self.sender.step(self.now_s)[0]

    def respond(self, request: InFlightProduce, code: int = 0, **more: Any) -> None:
        responses = {
            topic_partition: PartitionResponse(code, 0, **more)
            for topic_partition in request.batches
        }
        self.sender.on_response(request, responses, self.now_s)

    def outcomes(self) -> list[tuple[list[int], int | None]]:
        outcomes = [
            (values(batch), None if batch.error is None else batch.error.code())
            for batch in self.sender.completed
        ]
        self.sender.completed.clear()
        return outcomes


def values(batch: Any) -> list[int]:
    if not batch.is_closed:
        BatchFinisher().finish(batch)
    return [int(record.value or b"") for record in read_records(batch.buffer)]


def sent(request: InFlightProduce) -> dict[int, list[int]]:
    return {topic_partition[1]: values(batch) for topic_partition, batch in request.batches.items()}


def header(request: InFlightProduce, partition: int = 0) -> Any:
    records = request.batches["t", partition].buffer
    check_crcs(records)
    return read_header(records)


def established(**changed: Any) -> World:
    """A world whose leader has taken a first batch."""
    world = World(**changed)
    for partition in range(len(world.leaders)):
        world.produce(0, partition=partition)
    for request in world.step():
        world.respond(request)
    world.outcomes()
    return world


def test_batches_for_one_node_go_in_one_request() -> None:
    world = World(partitions=4, nodes=2)
    for partition in range(4):
        world.produce(partition, partition=partition)
    requests = {request.node_id: sent(request) for request in world.step()}
    assert requests == {0: {0: [0], 2: [2]}, 1: {1: [1], 3: [3]}}


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    world = World()
    world.sender.set_producer_id(ProducerIdAndEpoch.NONE)
    world.produce(1)
    assert world.sender.needs_producer_id
    assert world.step() == []
    world.sender.set_producer_id(ProducerIdAndEpoch(9, 0))
    (request,) = world.step()
    assert header(request).producer_id == 9


def test_sequences_count_records_without_a_gap() -> None:
    world = established()
    world.produce(*range(1, 13))
    requests = world.step()
    assert [sent(each)[0] for each in requests] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]
    assert [header(each).base_sequence for each in requests] == [1, 6, 11]


def test_at_most_five_requests_are_in_flight_to_a_node() -> None:
    world = established()
    world.produce(*range(100))
    first = world.step()
    assert len(first) == 5
    assert world.step() == []
    world.respond(first[0])
    assert len(world.step()) == 1


def test_batches_are_reported_in_their_order_whatever_order_they_end_in() -> None:
    world = established()
    world.produce(*range(1, 11))
    first, second = world.step()
    world.sender.on_network_error(first, TRANSPORT, world.now_s)
    world.respond(second)
    assert world.outcomes() == []
    (again,) = world.step(later_s=2)
    assert sent(again) == {0: [1, 2, 3, 4, 5]}
    world.respond(again)
    assert world.outcomes() == [([1, 2, 3, 4, 5], None), ([6, 7, 8, 9, 10], None)]


def test_one_batch_is_in_flight_until_the_leader_knows_the_producer() -> None:
    world = World()
    world.produce(*range(20))
    (first,) = world.step()
    world.respond(first)
    assert len(world.step()) == 3


def test_a_request_is_at_most_max_request_size() -> None:
    world = World(partitions=8, max_request_size=2000)
    for partition in range(8):
        world.producer.produce("t", b"x" * 800, partition=partition)
    assert [len(request.batches) for request in world.step()] == [2, 2, 2, 2]


def test_failed_batches_are_retried_first_one_at_a_time_and_in_order() -> None:
    world = established()
    world.produce(*range(1, 16))
    requests = world.step()
    for request in requests:
        world.sender.on_network_error(request, TRANSPORT, world.now_s)
    assert world.sender.needs_metadata
    assert world.step() == []  # it pauses
    order = []
    for _ in range(3):
        (again,) = world.step(2.0)
        order.append((sent(again)[0], header(again).base_sequence))
        world.respond(again)
    assert order == [([1, 2, 3, 4, 5], 1), ([6, 7, 8, 9, 10], 6), ([11, 12, 13, 14, 15], 11)]


def test_the_leader_in_a_not_leader_response_is_used_at_once() -> None:
    world = established(nodes=2)
    world.produce(1)
    (request,) = world.step()
    world.respond(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(1, 99))
    assert not world.sender.needs_metadata
    (again,) = world.step()
    assert again.node_id == 1


def test_a_not_leader_response_that_names_its_sender_is_retried_after_a_backoff() -> None:
    world = established(nodes=2)
    world.produce(1)
    (request,) = world.step()
    world.respond(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(request.node_id, 0))
    assert world.sender.needs_metadata
    assert world.step() == []
    (again,) = world.step(2.0)
    assert sent(again) == {0: [1]}


def test_a_batch_of_a_moved_partition_waits_for_metadata() -> None:
    world = established(nodes=2)
    world.produce(1)
    (request,) = world.step()
    world.respond(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.sender.needs_metadata
    world.leaders[0] = 1
    world.update_metadata()
    (again,) = world.step(2.0)
    assert (again.node_id, sent(again)) == (1, {0: [1]})


def test_a_new_leader_is_used_without_a_backoff() -> None:
    world = established(nodes=2, retry_backoff_ms=10_000, retry_backoff_max_ms=10_000)
    world.produce(1)
    (request,) = world.step()
    world.sender.on_network_error(request, TRANSPORT, world.now_s)
    world.update_metadata()
    assert world.step() == []
    world.leaders[0] = 1
    world.update_metadata()
    (again,) = world.step()
    assert again.node_id == 1
    assert sent(again) == {0: [1]}


def test_new_batches_wait_for_the_responses_of_the_old_leader() -> None:
    world = established(nodes=2)
    world.produce(*range(1, 6))
    (request,) = world.step()
    world.leaders[0] = 1
    world.update_metadata()
    world.produce(*range(6, 11))
    assert world.step() == []
    world.respond(request)
    assert [each.node_id for each in world.step()] == [1]


def test_a_batch_that_is_too_large_is_split_and_shares_its_sequences() -> None:
    world = established()
    world.produce(*range(1, 6))
    (request,) = world.step()
    world.respond(request, ErrorCode.MESSAGE_TOO_LARGE)
    order = []
    for _ in range(2):
        (again,) = world.step()
        order.append((sent(again)[0], header(again).base_sequence))
        world.respond(again)
    assert order == [([1, 2], 1), ([3, 4, 5], 3)]
    assert [outcome for _, outcome in world.outcomes()] == [None, None]


def test_a_single_record_that_is_too_large_fails() -> None:
    world = established()
    world.produce(1)
    (request,) = world.step()
    world.respond(request, ErrorCode.MESSAGE_TOO_LARGE)
    assert world.outcomes() == [([1], ErrorCode.MESSAGE_TOO_LARGE)]


def test_a_duplicate_counts_as_delivered() -> None:
    world = established()
    world.produce(1)
    (request,) = world.step()
    world.respond(request, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert world.outcomes() == [([1], None)]


def test_after_a_rejected_batch_the_rest_is_sent_with_a_new_epoch() -> None:
    world = established()
    world.produce(*range(1, 11))
    first, second = world.step()
    world.respond(first, ErrorCode.INVALID_RECORD)
    assert world.outcomes() == [([1, 2, 3, 4, 5], ErrorCode.INVALID_RECORD)]
    world.respond(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (again,) = world.step()
    assert sent(again) == {0: [6, 7, 8, 9, 10]}
    assert (header(again).producer_epoch, header(again).base_sequence) == (1, 0)


def test_a_batch_out_of_order_waits_for_the_one_before() -> None:
    world = established()
    world.produce(*range(1, 11))
    first, second = world.step()
    world.sender.on_network_error(first, TRANSPORT, world.now_s)
    world.respond(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    (again,) = world.step(2.0)
    assert (sent(again), header(again).producer_epoch) == ({0: [1, 2, 3, 4, 5]}, 0)


def test_a_batch_that_times_out_in_flight_starts_a_new_epoch() -> None:
    world = established(delivery_timeout_ms=1000)
    world.produce(1)
    (request,) = world.step()
    world.step(5.0)
    assert world.outcomes() == [([1], KafkaError._MSG_TIMED_OUT)]
    world.now_s = time.monotonic()
    world.sender.on_network_error(request, TRANSPORT, world.now_s)
    assert world.outcomes() == []  # it is reported once
    world.produce(2)
    (after,) = world.step()
    assert (header(after).producer_epoch, header(after).base_sequence) == (1, 0)


def test_a_batch_that_times_out_unsent_keeps_the_epoch() -> None:
    world = established(delivery_timeout_ms=1000)
    world.leaders[0] = -1
    world.update_metadata()
    world.produce(1)
    assert world.step(5.0) == []
    assert world.outcomes() == [([1], KafkaError._MSG_TIMED_OUT)]
    world.leaders[0] = 0
    world.update_metadata()
    world.now_s = time.monotonic()
    world.produce(2)
    (request,) = world.step()
    assert (header(request).producer_epoch, header(request).base_sequence) == (0, 1)


def test_other_partitions_change_epoch_when_they_have_nothing_in_flight() -> None:
    world = established(partitions=2)
    world.produce(1, partition=0)
    world.produce(1, partition=1)
    (request,) = world.step()
    world.sender.on_response(
        request,
        {
            ("t", 0): PartitionResponse(ErrorCode.INVALID_RECORD),
            ("t", 1): PartitionResponse(ErrorCode.REQUEST_TIMED_OUT),
        },
        world.now_s,
    )
    world.produce(2, partition=0)
    (renewed,) = world.step()
    assert header(renewed).producer_epoch == 1
    world.respond(renewed)
    (retried,) = world.step(2.0)
    assert header(retried, 1).producer_epoch == 0  # it may have been appended under that one
    world.respond(retried)
    world.produce(3, partition=1)
    (after,) = world.step()
    assert (header(after, 1).producer_epoch, header(after, 1).base_sequence) == (1, 0)


def test_a_fenced_producer_sends_nothing_more() -> None:
    world = established()
    world.produce(1)
    (request,) = world.step()
    world.produce(2)
    world.respond(request, ErrorCode.PRODUCER_FENCED)
    assert sorted(world.outcomes()) == [
        ([1], ErrorCode.PRODUCER_FENCED),
        ([2], ErrorCode.PRODUCER_FENCED),
    ]
    assert world.sender.fatal_error is not None
    assert world.sender.fatal_error.fatal()
    world.produce(3)
    assert world.step() == []


@pytest.mark.parametrize("retries", [0, 2])
def test_a_batch_is_retried_as_often_as_retries_allows(retries: int) -> None:
    world = established(retries=retries)
    world.produce(1)
    for _ in range(retries + 1):
        (request,) = world.step(3.0)
        world.respond(request, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert world.outcomes() == [([1], ErrorCode.NOT_ENOUGH_REPLICAS)]


def test_nothing_is_sent_to_a_throttled_node() -> None:
    world = established()
    world.produce(1)
    (request,) = world.step()
    world.sender.on_response(
        request, {("t", 0): PartitionResponse(0)}, world.now_s, throttle_ms=5000
    )
    world.produce(2)
    assert world.step() == []
    assert len(world.step(6.0)) == 1


def test_purged_batches_are_reported_once() -> None:
    world = established()
    world.produce(1)
    (request,) = world.step()
    world.produce(2)
    queued, in_flight = KafkaError(KafkaError._PURGE_QUEUE), KafkaError(KafkaError._PURGE_INFLIGHT)
    world.sender.purge(queued, in_flight)
    assert sorted(world.outcomes()) == [
        ([1], KafkaError._PURGE_INFLIGHT),
        ([2], KafkaError._PURGE_QUEUE),
    ]
    world.respond(request)
    assert world.outcomes() == []
    assert world.sender.is_drained


class Broker:
    """Partitions that check producers as Kafka does."""

    def __init__(self, partitions: int) -> None:
        self.logs: list[list[int]] = [[] for _ in range(partitions)]
        # producer id -> epoch, last sequence, and the last five batches by their sequences
        self._producers: list[dict[int, tuple[int, int, dict[tuple[int, int], int]]]] = [
            {} for _ in range(partitions)
        ]

    def append(self, partition: int, records: bytearray) -> tuple[int, int]:
        """The error and the base offset."""
        check_crcs(records)
        batch = read_header(records)
        log, producers = self.logs[partition], self._producers[partition]
        first, last = batch.base_sequence, batch.last_sequence
        entry = producers.get(batch.producer_id)
        recent: dict[tuple[int, int], int] = {}
        if entry is not None:
            epoch, last_sequence, recent = entry
            if batch.producer_epoch < epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if batch.producer_epoch > epoch:
                recent = {}
                if first != 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            elif (first, last) in recent:
                return ErrorCode.NONE, recent[first, last]
            elif first != last_sequence + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = len(log)
        log.extend(int(record.value or b"") for record in read_records(records))
        recent = {**recent, (first, last): offset}
        while len(recent) > 5:
            del recent[next(iter(recent))]
        producers[batch.producer_id] = batch.producer_epoch, last, recent
        return ErrorCode.NONE, offset


class Chaos:
    """Everything that may happen between a producer and its brokers, by a seed."""

    ERRORS = (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_RECORD,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.REQUEST_TIMED_OUT,
    )

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(partitions=3, nodes=2, delivery_timeout_ms=20_000)
        self.broker = Broker(3)
        self.wires: dict[int, list[InFlightProduce]] = {0: [], 1: []}
        self.produced = 0
        self.acknowledged: dict[tuple[int, int], list[int]] = {}  # by partition and offset
        self.reported: list[int] = []

    def run(self, steps: int) -> None:
        deeds = [self.produce, self.respond, self.respond, self.disconnect, self.move, self.wait]
        for _ in range(steps):
            self.random.choices(deeds, [6, 6, 6, 1, 1, 2])[0]()
            self.send()
        for _ in range(400):
            if not self.world.accumulator.buffered_records:
                return
            self.wait()
            self.send()
            for node in self.wires:
                while self.wires[node]:
                    self.process(node, faults=False)
        raise AssertionError("the sender never got to its end")

    def send(self, later_s: float = 0.001) -> None:
        for request in self.world.step(later_s):
            self.wires[request.node_id].append(request)
        self.collect()

    def collect(self) -> None:
        for batch in self.world.sender.completed:
            self.reported += values(batch)
            if batch.error is None:
                topic_partition = batch.partition, batch.base_offset
                self.acknowledged[topic_partition] = values(batch)
            self.world.accumulator.deallocate(batch)
        self.world.sender.completed.clear()

    def produce(self) -> None:
        count = self.random.randint(1, 12)
        partition = self.random.randrange(3)
        self.world.produce(*range(self.produced, self.produced + count), partition=partition)
        self.produced += count

    def respond(self) -> None:
        busy = [node for node, wire in self.wires.items() if wire]
        if busy:
            self.process(self.random.choice(busy), faults=True)

    def process(self, node: int, *, faults: bool) -> None:
        request = self.wires[node].pop(0)
        self.world.sender.on_response(request, self.apply(request, faults), self.world.now_s)
        self.collect()

    def apply(
        self, request: InFlightProduce, faults: bool
    ) -> dict[tuple[str, int], PartitionResponse]:
        responses = {}
        for topic_partition, batch in request.batches.items():
            partition = topic_partition[1]
            chance = self.random.random() if faults else 1.0
            if self.world.leaders[partition] != request.node_id:
                responses[topic_partition] = PartitionResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif chance < 0.15:
                responses[topic_partition] = PartitionResponse(self.random.choice(self.ERRORS))
            else:
                code, offset = self.broker.append(partition, batch.buffer)
                if chance < 0.2 and code == ErrorCode.NONE:
                    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                responses[topic_partition] = PartitionResponse(code, offset)
        return responses

    def disconnect(self) -> None:
        """Some of what was sent has arrived; nobody will ever tell which."""
        node = self.random.randrange(2)
        wire, self.wires[node] = self.wires[node], []
        arrived = self.random.randint(0, len(wire))
        for request in wire[:arrived]:
            self.apply(request, faults=False)
        for request in wire:
            self.world.sender.on_network_error(request, TRANSPORT, self.world.now_s)
        self.collect()

    def move(self) -> None:
        partition = self.random.randrange(3)
        self.world.leaders[partition] = 1 - self.world.leaders[partition]
        if self.random.random() < 0.5:
            self.world.update_metadata()

    def wait(self) -> None:
        self.world.update_metadata()
        self.send(self.random.choice([0.1, 1.0, 5.0]))


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_nothing_is_lost_reordered_or_duplicated_whatever_happens(seed: int) -> None:
    chaos = Chaos(seed)
    chaos.run(120)
    for partition, log in enumerate(chaos.broker.logs):
        assert log == sorted(set(log)), f"partition {partition} has {log}"
    for (partition, offset), batch in chaos.acknowledged.items():
        log = chaos.broker.logs[partition]
        assert log[offset : offset + len(batch)] == batch
    assert sorted(chaos.reported) == list(range(chaos.produced))
