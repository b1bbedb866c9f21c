"""A random walk: producers and zombies, timeouts, lost markers, coordinators that come and go.

The promises, checked on the way and when all has healed:
- a transaction is committed, or aborted, on all its partitions alike, as reported to its producer;
- no transaction is left open;
- who was fenced changes nothing;
- no two incarnations of a producer get the same epoch, and epochs never go back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.coordinator.transactions.harness import (
    FakeParticipants,
    Producer,
    Request,
    TransactionHarness,
)

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.transactions.add_partitions import TransactionPartitions
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import InitProducerIdResponse
from barnabas.wire.messages.transactions import EndTxnResponse

PARTITIONS = range(4)
IDS = ["red", "green", "blue"]
STEPS = 400
TIMEOUT_MS = 5_000


@dataclass(eq=False)
class Deal:
    """One transaction as its producer sees it."""

    outcomes: dict[TopicPartition, bool] = field(default_factory=dict)
    reported: bool | None = None
    """The outcome that the producer got in the response."""


class Partitions(FakeParticipants):
    """Partitions that know whose transaction is open in them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[tuple[int, TopicPartition], Deal] = {}

    def put(self, producer: Producer, partition: TopicPartition, deal: Deal) -> bool:
        topic_partition = producer.producer_id, partition
        if not self.append(producer.producer_id, producer.epoch, partition):
            return False
        assert self.open.setdefault(topic_partition, deal) is deal, (
            "two transactions in one partition"
        )
        return True

    def write(self, request: Request) -> dict[TopicPartition, ErrorCode]:
        codes = super().write(request)
        marker = request.marker
        for partition, code in codes.items():
            deal = self.open.get((marker.producer_id, partition))
            if deal is not None and not self.of(marker.producer_id, partition).has_open:
                assert code is ErrorCode.NONE
                deal.outcomes[partition] = marker.committed
                del self.open[marker.producer_id, partition]
        return codes


class Client:
    """One incarnation of a producer: it waits for each response, and stops when it is fenced."""

    def __init__(self, walk: "Walk", transactional_id: str) -> None:
        self.walk = walk
        self.transactional_id = transactional_id
        self.me: Producer | None = None
        self.deal: Deal | None = None
        self.ending: bool | None = None
        self.is_waiting = False
        self.is_over = False

    def act(self, random: Random) -> None:
        if self.is_waiting or self.is_over:
            return
        if self.me is None:
            response = self.walk.harness.init(self.transactional_id, timeout_ms=TIMEOUT_MS)
            self._wait_for(response, self._initialized)
        elif self.ending is not None or (self.deal is not None and random.random() < 0.4):
            self._end(random.random() < 0.7 if self.ending is None else self.ending)
        else:
            self._write(random.sample(PARTITIONS, random.randint(1, 3)))

    def _initialized(self, response: InitProducerIdResponse) -> None:
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.NONE:
            self.me = Producer(self.transactional_id, response.producer_id, response.producer_epoch)
            self.walk.given(self)
        else:
            assert code.retriable, code

    def _write(self, indexes: Sequence[int]) -> None:
        me, harness = self.me, self.walk.harness
        assert me is not None

        def added(outcomes: dict[TopicPartition, ErrorCode]) -> None:
            (code,) = set(outcomes.values())
            if not self._goes_on(code):
                return
            if self.deal is None:
                self.deal = Deal()
                self.walk.deals.append(self.deal)
            for partition in outcomes:
                if not self.walk.partitions.put(me, partition, self.deal):
                    self.is_over = True  # the log has fenced it

        if self.walk.is_bumping:
            self._wait_for(harness.add(me, *indexes), added)
        else:
            partitions = [("t", index) for index in indexes]
            request = TransactionPartitions(
                self.transactional_id, me.producer_id, me.epoch, partitions, client_version=0
            )
            self._wait_for(harness.coordinator._add_or_verify(request), added)

    def _end(self, committed: bool) -> None:
        assert self.me is not None
        version = 5 if self.walk.is_bumping else 4

        def ended(response: EndTxnResponse) -> None:
            code = ErrorCode.of(response.error_code)
            if code is ErrorCode.INVALID_TXN_STATE and self.ending is not None:
                # It timed out while it was being ended, and was aborted.
                assert committed
                self.is_over = True
            elif self._goes_on(code):
                assert self.deal is not None
                assert self.me is not None
                self.deal.reported = committed
                self.deal = self.ending = None
                if self.walk.is_bumping:
                    self.me = self.me.after(response)
                    self.walk.given(self)

        self.ending = committed
        self._wait_for(self.walk.harness.end(self.me, committed=committed, version=version), ended)

    def _goes_on(self, code: ErrorCode) -> bool:
        if code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
            self.is_over = True
        return code is ErrorCode.NONE

    def _wait_for(self, response: PendingResponse, received: Callable) -> None:  # type: ignore[type-arg]
        self.is_waiting = True

        def settle(done: PendingResponse) -> None:  # type: ignore[type-arg]
            self.is_waiting = False
            received(done.result())

        response.when_done(settle)


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.is_bumping = self.random.random() < 0.5
        self.harness = TransactionHarness(
            transaction_version=2 if self.is_bumping else 1,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000,
        )
        self.partitions = self.harness.participants = Partitions()
        self.harness.elect()
        self.deals: list[Deal] = []
        self.clients: list[Client] = []
        self._given: dict[str, list[tuple[int, int]]] = {}

    def given(self, client: Client) -> None:
        """A producer got its id and epoch, which no other producer has got."""
        assert client.me is not None
        identity = client.me.producer_id, client.me.epoch
        history = self._given.setdefault(client.transactional_id, [])
        assert identity not in history
        assert all(epoch < identity[1] for id_, epoch in history if id_ == identity[0])
        history.append(identity)

    def run(self) -> None:
        for _ in range(STEPS):
            self.random.choices(
                [
                    self._act,
                    self._replace_a_producer,
                    self._let_time_pass,
                    self._touch_markers,
                    self._touch_the_log,
                    self._change_the_coordinator,
                    self._meddle,
                ],
                [60, 2, 8, 15, 6, 2, 5],
            )[0]()
        self._heal()
        self._check()

    def _act(self) -> None:
        if self.clients:
            self.random.choice(self.clients).act(self.random)

    def _replace_a_producer(self) -> None:
        """The one before it stays: it does not know."""
        self.clients.append(Client(self, self.random.choice(IDS)))

    def _let_time_pass(self) -> None:
        self.harness.advance(self.random.choice([1, 50, 200, 1_000, 3_000]))

    def _touch_markers(self) -> None:
        self.partitions.is_holding = self.random.random() < 0.4
        self.partitions.errors.clear()
        if self.random.random() < 0.3:
            partition = "t", self.random.choice(PARTITIONS)
            self.partitions.errors[partition] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        for request in [each for each in self.partitions.held if self.random.random() < 0.5]:
            self.partitions.held.remove(request)
            self._deliver(request)

    def _deliver(self, request: Request) -> None:
        match self.random.choice(["at once", "twice", "answer lost", "lost"]):
            case "at once":
                self.partitions.deliver(request)
            case "twice":
                self.partitions.write(request)
                self.partitions.deliver(request)
            case "answer lost":
                self.partitions.write(request)
                request.answer.fail(TimeoutError())
            case "lost":
                request.answer.fail(TimeoutError())

    def _touch_the_log(self) -> None:
        log = self.harness.log
        log.is_committing = self.random.random() < 0.8
        if log.is_committing:
            log.commit()
        append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        log.append_error = append_error if self.random.random() < 0.1 else None

    def _change_the_coordinator(self) -> None:
        """What was not committed may be lost; markers on their way may still arrive."""
        log = self.harness.log
        if self.random.random() < 0.5:
            log.truncate_to(log.high_watermark)
        log.append_error = None
        self.harness.elect()

    def _meddle(self) -> None:
        """A zombie, or an unknown producer, changes nothing."""
        transactional_id = self.random.choice(IDS)
        known = self.harness.transactions.by_id
        current = known.get(transactional_id)
        if current is None or not current.producer_epoch:
            return
        stale = Producer(
            transactional_id, current.producer_id, self.random.randrange(current.producer_epoch)
        )
        written = self.harness.log.end_offset
        self.harness.add(stale, 0)
        self.harness.end(stale, committed=self.random.random() < 0.5)
        self.harness.end(stale, version=4)
        self.harness.end(Producer(transactional_id, 1, 0))
        assert known.get(transactional_id) == current
        assert self.harness.log.end_offset == written

    def _heal(self) -> None:
        partitions, log = self.partitions, self.harness.log
        partitions.is_holding = False
        partitions.errors.clear()
        held, partitions.held = partitions.held, []
        for request in held:
            partitions.deliver(request)
        log.append_error, log.is_committing = None, True
        log.commit()
        for client in self.clients:
            client.is_over = True
        self.harness.advance(60_000)

    def _check(self) -> None:
        known = self.harness.transactions.by_id.values()
        assert {each.state.title for each in known} <= {"Empty", "CompleteCommit", "CompleteAbort"}
        assert not self.partitions.open
        assert not self.harness.transactions.markers.pending
        for deal in self.deals:
            assert len(set(deal.outcomes.values())) <= 1
            if deal.reported is not None and deal.outcomes:
                assert set(deal.outcomes.values()) == {deal.reported}


@pytest.mark.parametrize("seed", range(60))
def test_transactions_keep_their_invariants_in_a_random_walk(seed: int) -> None:
    Walk(seed).run()


def test_the_random_walk_reaches_interesting_states() -> None:
    walks = [Walk(seed) for seed in range(20)]
    for walk in walks:
        walk.run()
    deals = [deal for walk in walks for deal in walk.deals]
    response = [deal.reported for deal in deals]
    assert response.count(True) > 100
    assert response.count(False) > 30
    assert sum(deal.reported is None and False in deal.outcomes.values() for deal in deals) > 30


def test_a_marker_of_version_2_that_comes_very_late_ends_nothing() -> None:
    walk = Walk(0)
    harness = walk.harness
    harness.image.features["transaction.version"] = 2
    producer = harness.producer("x")
    harness.add(producer, 0)
    first = harness.end(producer).result()
    following = producer.after(first)
    harness.add(following, 0)
    deal = Deal()
    walk.partitions.put(following, ("t", 0), deal)
    late = TransactionMarker(producer.producer_id, following.epoch, harness.epoch, True, 2)
    walk.partitions.write(Request(late, [("t", 0)], PendingResponse()))
    assert not deal.outcomes
