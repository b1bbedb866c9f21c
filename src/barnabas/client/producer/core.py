"""A producer's part on the loop: joins the sender to the cluster."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.client.cluster import Backoff, Cluster, Deadline, Metadata, TopicInfo, network_error
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.metrics import Metrics
from barnabas.client.producer import produce
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.dispatch import Dispatch, Outcome
from barnabas.client.producer.librdkafka_statistics import statistics_json
from barnabas.client.producer.outbox import Outbox
from barnabas.client.producer.sealing import Identity
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.statistics import Statistics
from barnabas.client.producer.transaction import Transaction
from barnabas.client.producer.transactions import OLD_PRODUCE, Transactions
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import ThrottleEvent
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceResponse

PROPAGATION_S = 30.0
"""How long a topic may be unknown: brokers hear of a new one at different times."""

_LATE_S = 0.0005
"""A timer comes a little late rather than a little early, or it would be for nothing."""


@dataclass(slots=True, frozen=True)
class Facade:
    """What the core has to say to the producer that users see. Any of it may be called anytime."""

    outbox: Outbox
    told: Callable[[KafkaError], None]  # error_cb
    refuse: Callable[[KafkaException | None], None]  # what `produce` raises from now on


class ProducerCore:
    """Made and touched on the loop alone, but for the accumulator and the outbox."""

    def __init__(
        self, settings: ProducerSettings, accumulator: Accumulator, facade: Facade
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._facade = facade
        self._loop = asyncio.get_running_loop()
        self._transaction: Transaction | None = None
        self._transactions: Transactions | None = None
        if settings.transactional_id is not None:
            self._transaction = Transaction()
            self._transactions = Transactions(settings, self, self._transaction)
            facade.refuse(self._transaction.refusal())
        self.cluster = Cluster(settings, facade.told)
        self.cluster.add_listener(self._learn)
        self.sender = Sender(settings, accumulator, self._transaction)
        self.statistics = Statistics(settings)
        self._began_s = time.time()
        self._known: dict[str, TopicInfo] = {}
        self._unknown: set[str] = set()  # topics with records, of which nothing is known yet
        self._timer: asyncio.TimerHandle | None = None
        self._statistics_timer: asyncio.TimerHandle | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._watchers: list[asyncio.Future[None]] = []  # of those who wait for it to be drained
        self._is_fatal = False
        self._is_closed = False
        self._tell_statistics_later()

    @property
    def transactions(self) -> Transactions:
        if self._transactions is None:
            raise KafkaException(
                KafkaError(KafkaError._NOT_CONFIGURED, "the producer has no transactional.id")
            )
        return self._transactions

    def step(self) -> None:
        """Send what may be sent now. Called whenever something has changed."""
        if self._is_closed:
            return
        now_s = time.monotonic()
        names = self._accumulator.asked_for()
        if names:
            self._unknown.update(names)
            self.cluster.add_topics(names)
        if self.sender.needs_identity and self._transaction is None and self._identifying is None:
            self._identifying = self._loop.create_task(self._identify())
        dispatches, again_s = self.sender.step(now_s)
        for dispatch in dispatches:
            self._transmit(dispatch)
        unknown_s = self._give_up_unknown(now_s)
        self._settle(now_s)
        if self._transactions is not None:
            self._transactions.join()
        if self.sender.is_stale:
            self.sender.is_stale = False
            self.cluster.refresh()
        self._step_again(min((at for at in (again_s, unknown_s) if at is not None), default=None))

    async def drained(self, deadline: Deadline) -> None:
        """Until all that was produced has an outcome; TimeoutError after the deadline."""
        self._accumulator.flush(True)
        try:
            self.step()
            while not (self.sender.is_drained and self._accumulator.is_empty):
                changed = self._loop.create_future()
                self._watchers.append(changed)
                await asyncio.wait_for(changed, deadline.remaining_ms() / 1000)
        finally:
            self._accumulator.flush(False)

    async def known(self, topic: str, deadline: Deadline) -> None:
        """Until a topic's partitions are known; KafkaException if that is not to be."""
        self.step()
        await self.cluster.topic(topic, deadline=deadline)
        self._learn(self.cluster.metadata)

    def purge(self, queued: bool, in_flight: bool) -> None:
        """Give up what waits, and what is under way: that may be appended all the same."""
        self.sender.purge(
            KafkaError(KafkaError._PURGE_QUEUE, "purged in queue") if queued else None,
            KafkaError(KafkaError._PURGE_INFLIGHT, "purged in flight") if in_flight else None,
        )
        self.step()

    def metrics(self) -> Metrics:
        return self.statistics.metrics(
            self._accumulator,
            self.sender,
            self.cluster.counters,
            self._settings.buffer_memory,
        )

    def admit(self) -> None:
        """Let `produce` take records, or not, as the transaction has it now."""
        if self._transaction is not None:
            self._facade.refuse(self._transaction.refusal())

    async def close(self) -> None:
        """Hang up; what is not delivered by now will not be."""
        self._is_closed = True
        for timer in (self._timer, self._statistics_timer):
            if timer is not None:
                timer.cancel()
        if self._identifying is not None:
            self._identifying.cancel()
        await self.cluster.close()

    def _step_again(self, at_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_s is not None:
            self._timer = self._loop.call_at(at_s + _LATE_S, self.step)

    # Sending

    def _transmit(self, dispatch: Dispatch) -> None:
        settings = self._settings
        request = produce.request(settings, dispatch, self.cluster.metadata)
        self.statistics.sent(dispatch, dispatch.sent_s)
        newest = None
        if self._transaction is not None and not self._transaction.is_joined_by_writing:
            newest = OLD_PRODUCE

        def answered(outcome: ProduceResponse | OSError | None) -> None:
            now_s = time.monotonic()
            if outcome is None:
                self.sender.unanswered(dispatch)
            elif isinstance(outcome, OSError):
                self.sender.failed(dispatch, network_error(outcome), now_s)
            else:
                self._note_throttling(dispatch, outcome.throttle_time_ms, now_s)
                answers = produce.answers(outcome, request)
                self.sender.answered(dispatch, answers, now_s, outcome.throttle_time_ms)
            self.step()

        self.cluster.send(
            dispatch.node_id,
            request,
            settings.request_timeout_ms,
            answered,
            max_version=newest,
        )

    def _note_throttling(self, dispatch: Dispatch, throttle_ms: int, now_s: float) -> None:
        self.statistics.answered(dispatch, throttle_ms, now_s)
        callback = self._settings.throttle_cb
        if throttle_ms > 0 and callback is not None:
            broker = self.cluster.metadata.brokers.get(dispatch.node_id)
            name = "" if broker is None else f"{broker.host}:{broker.port}/{broker.node_id}"
            event = ThrottleEvent(name, dispatch.node_id, throttle_ms / 1000)
            self._facade.outbox.put(lambda: callback(event))

    async def _identify(self) -> None:
        """Get a producer id, however long that takes: batches time out by themselves."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        try:
            while self.sender.needs_identity:
                try:
                    told = await self.cluster.send_request(request)
                except KafkaException:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                    continue
                if told.error_code == ErrorCode.NONE:
                    self.sender.identify(Identity(told.producer_id, told.producer_epoch))
                elif ErrorCode.of(told.error_code).retriable:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                else:
                    error = broker_error(told.error_code)
                    self.sender.abandon(KafkaError(error.code(), error.str(), fatal=True))
        finally:
            self._identifying = None
        self.step()

    # Outcomes

    def _settle(self, now_s: float) -> None:
        """Hand over what is delivered or has failed."""
        finished, self.sender.finished = self.sender.finished, []
        for outcome in finished:
            self.statistics.finished(outcome, now_s)
            batch = outcome.batch
            if batch.resolve(
                outcome.error,
                outcome.base_offset,
                outcome.append_time_ms,
                self._settings.report_only_errors,
            ):
                self._facade.outbox.put(batch)
            else:
                self._facade.outbox.let_go(batch)
        if finished:
            self.admit()
        if self.sender.fatal is not None and not self._is_fatal:
            self._is_fatal = True
            self._facade.refuse(KafkaException(self.sender.fatal))
            self._facade.told(self.sender.fatal)
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)

    def _tell_statistics_later(self) -> None:
        interval_s = self._settings.statistics_interval_ms / 1000
        if interval_s > 0 and self._settings.stats_cb is not None:
            self._statistics_timer = self._loop.call_later(interval_s, self._tell_statistics)

    def _tell_statistics(self) -> None:
        callback = self._settings.stats_cb
        assert callback is not None, "the timer is set for it"
        told = statistics_json(
            self._settings,
            self._accumulator,
            self.sender,
            self.cluster,
            self.statistics,
            self._began_s,
        )
        self._facade.outbox.put(lambda: callback(told))
        self._tell_statistics_later()

    # Metadata

    def _learn(self, metadata: Metadata) -> None:
        self.sender.learn(metadata)
        for name, topic in metadata.topics.items():
            if self._known.get(name) == topic:
                continue
            if topic.error == ErrorCode.NONE and topic.partitions:
                self._known[name] = topic
                self._unknown.discard(name)
                available = [each.index for each in topic.partitions if each.leader >= 0]
                missing = KafkaError(KafkaError._UNKNOWN_PARTITION, f"{name} has no such partition")
                for misfit in self._accumulator.learn(name, len(topic.partitions), available):
                    self.sender.finished.append(Outcome(misfit, missing))
            elif topic.error != ErrorCode.NONE and not topic.error.retriable:
                self._give_up(name, broker_error(topic.error))
        self.step()

    def _give_up_unknown(self, now_s: float) -> float | None:
        """Report records of topics that stay unknown; when to look again."""
        if not self._unknown:
            return None
        patience_s = min(PROPAGATION_S, self._settings.delivery_timeout_ms / 1000)
        for name, since_s in self._accumulator.waiting_since().items():
            if now_s - since_s >= patience_s:
                self._give_up(name, _why_unknown(name, self.cluster.metadata.topics.get(name)))
        return now_s + min(1.0, patience_s / 10)

    def _give_up(self, name: str, error: KafkaError) -> None:
        batch = self._accumulator.give_up(name)
        if batch is not None:
            self.sender.finished.append(Outcome(batch, error))


def _why_unknown(name: str, known: TopicInfo | None) -> KafkaError:
    if known is not None and known.error != ErrorCode.NONE:
        return broker_error(known.error, f"{name}: {known.error.name}")
    return KafkaError(KafkaError._MSG_TIMED_OUT, f"nothing is known of {name}: no broker answers")
