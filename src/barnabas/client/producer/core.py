"""The part of a producer that runs on the loop: connects the sender with the cluster."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.cluster import (
    Backoff,
    ClusterClient,
    Deadline,
    MetadataSnapshot,
    TopicInfo,
    network_error,
)
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.metrics import Metrics
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._partitioners import BY_NAME
from barnabas.client.producer.batch_finisher import ProducerIdAndEpoch
from barnabas.client.producer.delivery_reports import DeliveryReports
from barnabas.client.producer.interceptors import ProducerInterceptors
from barnabas.client.producer.librdkafka_statistics import statistics_json
from barnabas.client.producer.lost_records import (
    log_failed,
    log_missing_topic,
    log_open_transaction,
    log_undelivered,
)
from barnabas.client.producer.metrics import ProducerMetrics
from barnabas.client.producer.produce_request import (
    InFlightProduce,
    build_request,
    partition_responses,
)
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.transaction import ProducerTransaction
from barnabas.client.producer.transaction_manager import LAST_V1_PRODUCE, TransactionManager
from barnabas.client.settings import EXPECTED_SETTINGS, ProducerSettings
from barnabas.client.values import ThrottleEvent
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.producer_ids import InitProducerIdRequest

METADATA_TIMEOUT_S = 30.0
"""How long records wait for a topic: brokers learn of a new one at different times."""

TOPIC_CREATION_S = 1.0
"""How long the automatic creation of a topic may take before its absence is logged."""

ABORT_TIMEOUT_MS = 3_000
"""How long closing waits until the open transaction is aborted."""

_TIMER_SLACK_S = 0.0005
"""A timer that fired a little too early would find nothing to do."""


@dataclass(slots=True, frozen=True)
class ProducerCallbacks:
    """What the core calls on the producer object of the user, at any time."""

    reports: DeliveryReports
    on_error: Callable[[KafkaError], None]
    set_produce_error: Callable[[KafkaException | None], None]


class ProducerCore:
    """Created and used only on the loop, except for the accumulator and the delivery reports."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: RecordAccumulator,
        callbacks: ProducerCallbacks,
    ) -> None:
        self._settings = settings
        self._accumulator = accumulator
        self._callbacks = callbacks
        self._loop = asyncio.get_running_loop()
        self._transaction: ProducerTransaction | None = None
        self._transaction_manager: TransactionManager | None = None
        if settings.transactional_id is not None:
            self._transaction = ProducerTransaction()
            self._transaction_manager = TransactionManager(settings, self, self._transaction)
            callbacks.set_produce_error(self._transaction.produce_error())
        self.cluster: ClusterClient = ClusterClient(settings, callbacks.on_error)
        self.cluster.add_listener(self._on_metadata)
        self.sender: Sender = Sender(settings, accumulator, self._transaction)
        self.producer_metrics: ProducerMetrics = ProducerMetrics(settings)
        self._started_s = time.time()
        self._topics: dict[str, TopicInfo] = {}
        self._waiting_topics: set[str] = set()  # topics with records and without metadata
        self._missing_topics: set[str] = set()  # those of them that were logged
        self._timer: asyncio.TimerHandle | None = None
        self._statistics_timer: asyncio.TimerHandle | None = None
        self._init_task: asyncio.Task[None] | None = None
        self._drain_waiters: list[asyncio.Future[None]] = []
        self._is_fatal = False
        self._is_closed = False
        self._schedule_statistics()

    @property
    def transaction_manager(self) -> TransactionManager:
        if self._transaction_manager is None:
            raise KafkaException(
                KafkaError(
                    KafkaError._NOT_CONFIGURED, "transactions need the setting transactional.id"
                )
            )
        return self._transaction_manager

    def step(self) -> None:
        """Sends all requests that can be sent now. Called whenever something has changed."""
        if self._is_closed:
            return
        now_s = time.monotonic()
        names = self._accumulator.take_new_topics()
        if names:
            self._waiting_topics.update(names)
            self.cluster.add_topics(names)
        if self.sender.needs_producer_id and self._transaction is None and self._init_task is None:
            self._init_task = self._loop.create_task(self._init_producer_id())
        requests, next_step_s = self.sender.step(now_s)
        for in_flight in requests:
            self._send(in_flight)
        next_expiry_s = self._expire_waiting(now_s)
        self._report_completed(now_s)
        if self._transaction_manager is not None:
            self._transaction_manager.add_new_partitions()
        if self.sender.needs_metadata:
            self.sender.needs_metadata = False
            self.cluster.refresh()
        self._schedule_step(
            min((at for at in (next_step_s, next_expiry_s) if at is not None), default=None)
        )

    async def drain(self, deadline: Deadline) -> None:
        """Waits until every record has an outcome. Raises TimeoutError after the deadline."""
        self._accumulator.begin_flush()
        try:
            self.step()
            while not (self.sender.is_drained and self._accumulator.is_empty):
                changed = self._loop.create_future()
                self._drain_waiters.append(changed)
                await asyncio.wait_for(changed, deadline.remaining_ms() / 1000)
        finally:
            self._accumulator.end_flush()

    async def wait_for_topic(self, topic: str, deadline: Deadline) -> None:
        """Waits until a topic's partitions are known. Raises KafkaException on an error."""
        self.step()
        await self.cluster.topic(topic, deadline=deadline)
        self._on_metadata(self.cluster.metadata)

    def purge(self, queued: bool, in_flight: bool) -> None:
        """Fails records that wait, and records in flight: those may be appended all the same."""
        self.sender.purge(
            KafkaError(KafkaError._PURGE_QUEUE, "purged in queue") if queued else None,
            KafkaError(KafkaError._PURGE_INFLIGHT, "purged in flight") if in_flight else None,
        )
        self.step()

    def metrics(self) -> Metrics:
        return self.producer_metrics.collect(
            self._accumulator,
            self.sender,
            self.cluster.counters,
            self._settings.buffer_memory,
        )

    def update_produce_error(self) -> None:
        """Lets `produce` accept records or not, by the state of the transaction."""
        if self._transaction is not None:
            self._callbacks.set_produce_error(self._transaction.produce_error())

    async def close(self, timeout_ms: float = ABORT_TIMEOUT_MS) -> bool:
        """Closes the connections. Records that are not delivered yet are not delivered any more.

        Aborts an open transaction within the timeout; returns False if that did not succeed.
        """
        is_aborted = await self._abort_open_transaction(min(timeout_ms, ABORT_TIMEOUT_MS))
        reports = self._callbacks.reports
        log_undelivered(
            self._settings, reports.undelivered_count, has_timed_out=reports.has_flush_timed_out
        )
        self._is_closed = True
        for timer in (self._timer, self._statistics_timer):
            if timer is not None:
                timer.cancel()
        if self._init_task is not None:
            self._init_task.cancel()
        await self.cluster.close()
        return is_aborted

    async def _abort_open_transaction(self, timeout_ms: float) -> bool:
        """Consumers with read_committed would otherwise wait until it times out."""
        if self._transaction is None or not self._transaction.is_to_abort:
            return True
        log_open_transaction(self._settings)
        try:
            await self.transaction_manager.abort(Deadline.after(timeout_ms))
        except KafkaException:
            return False
        return True

    def _schedule_step(self, at_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_s is not None:
            self._timer = self._loop.call_at(at_s + _TIMER_SLACK_S, self.step)

    # Sending

    def _send(self, in_flight: InFlightProduce) -> None:
        settings = self._settings
        request = build_request(settings, in_flight, self.cluster.metadata)
        self.producer_metrics.on_send(in_flight, in_flight.sent_s)
        max_version = None
        if self._transaction is not None and not self._transaction.is_v2:
            max_version = LAST_V1_PRODUCE

        def on_response(response: ProduceResponse | OSError | None) -> None:
            now_s = time.monotonic()
            if response is None:
                self.sender.on_sent_without_acks(in_flight)
            elif isinstance(response, OSError):
                self.sender.on_network_error(in_flight, network_error(response), now_s)
            else:
                self._on_throttle(in_flight, response.throttle_time_ms, now_s)
                responses = partition_responses(response, request)
                self.sender.on_response(in_flight, responses, now_s, response.throttle_time_ms)
            self.step()

        self.cluster.send(
            in_flight.node_id,
            request,
            settings.request_timeout_ms,
            on_response,
            max_version=max_version,
        )

    def _on_throttle(self, in_flight: InFlightProduce, throttle_ms: int, now_s: float) -> None:
        self.producer_metrics.on_response(in_flight, throttle_ms, now_s)
        callback = self._settings.throttle_cb
        if throttle_ms > 0 and callback is not None:
            broker = self.cluster.metadata.brokers.get(in_flight.node_id)
            name = "" if broker is None else f"{broker.host}:{broker.port}/{broker.node_id}"
            event = ThrottleEvent(name, in_flight.node_id, throttle_ms / 1000)
            self._callbacks.reports.put(lambda: callback(event))

    async def _init_producer_id(self) -> None:
        """Gets a producer id, however long that takes: batches time out by themselves."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self._settings.transaction_timeout_ms
        )
        try:
            while self.sender.needs_producer_id:
                try:
                    response = await self.cluster.send_request(request)
                except KafkaException:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                    continue
                if response.error_code == ErrorCode.NONE:
                    self.sender.set_producer_id(
                        ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                    )
                elif ErrorCode.of(response.error_code).retriable:
                    await asyncio.sleep(backoff.next_ms() / 1000)
                else:
                    error = broker_error(response.error_code)
                    self.sender.fail_fatally(KafkaError(error.code(), error.str(), fatal=True))
        finally:
            self._init_task = None
        self.step()

    # Outcomes

    def _report_completed(self, now_s: float) -> None:
        """Passes the batches that are done on to the user's thread."""
        completed, self.sender.completed = self.sender.completed, []
        unreported = []
        for batch in completed:
            self.producer_metrics.on_completed(batch, now_s)
            if batch.prepare_reports(self._settings.report_only_errors):
                self._callbacks.reports.put(batch)
            else:
                unreported.append(batch)
        if unreported:
            log_failed(self._settings, unreported)  # before a flush that waits for them returns
            for batch in unreported:
                self._callbacks.reports.deallocate(batch)
        if completed:
            self.update_produce_error()
        if self.sender.fatal_error is not None and not self._is_fatal:
            self._is_fatal = True
            self._callbacks.set_produce_error(KafkaException(self.sender.fatal_error))
            self._callbacks.on_error(self.sender.fatal_error)
        waiters, self._drain_waiters = self._drain_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _schedule_statistics(self) -> None:
        interval_s = self._settings.statistics_interval_ms / 1000
        if interval_s > 0 and self._settings.stats_cb is not None:
            self._statistics_timer = self._loop.call_later(interval_s, self._report_statistics)

    def _report_statistics(self) -> None:
        callback = self._settings.stats_cb
        assert callback is not None, "the timer is set for it only"
        statistics = statistics_json(
            self._settings,
            self._accumulator,
            self.sender,
            self.cluster,
            self.producer_metrics,
            self._started_s,
        )
        self._callbacks.reports.put(lambda: callback(statistics))
        self._schedule_statistics()

    # Metadata

    def _on_metadata(self, metadata: MetadataSnapshot) -> None:
        self.sender.update_metadata(metadata)
        for name, topic in metadata.topics.items():
            if self._topics.get(name) == topic:
                continue
            if topic.error == ErrorCode.NONE and topic.partitions:
                self._topics[name] = topic
                self._waiting_topics.discard(name)
                self._missing_topics.discard(name)
                available = [info.index for info in topic.partitions if info.leader >= 0]
                count = len(topic.partitions)
                failed = self._accumulator.update_topic(name, count, available)
                reason = f"topic {name} has no such partition: it has {count}, numbered from 0"
                self.sender.fail_unsent(failed, KafkaError(KafkaError._UNKNOWN_PARTITION, reason))
            elif _is_rejected(topic):
                self._fail_waiting(name, _topic_error(topic))
        self.step()

    def _expire_waiting(self, now_s: float) -> float | None:
        """Fails the records of topics that stay unknown. Returns when to check again."""
        if not self._waiting_topics:
            return None
        timeout_s = min(METADATA_TIMEOUT_S, self._settings.delivery_timeout_ms / 1000)
        for name, since_s in self._accumulator.waiting_since().items():
            topic = self.cluster.metadata.topics.get(name)
            if topic is not None and _is_rejected(topic):
                self._fail_waiting(name, _topic_error(topic))
                self.cluster.refresh()  # it may be accepted by now, for later records
            elif now_s - since_s >= timeout_s:
                self._fail_waiting(name, self._missing_topic_error(name))
            elif now_s - since_s >= TOPIC_CREATION_S:
                self._log_missing_topic(name, timeout_s)
        return now_s + min(1.0, timeout_s / 10)

    def _log_missing_topic(self, name: str, timeout_s: float) -> None:
        """Logs once that records wait for a topic, which would otherwise be silent for long."""
        topic = self.cluster.metadata.topics.get(name)
        if name in self._missing_topics or topic is None:
            return
        if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._missing_topics.add(name)
            log_missing_topic(self._settings, name, timeout_s)

    def _missing_topic_error(self, name: str) -> KafkaError:
        topic = self.cluster.metadata.topics.get(name)
        if topic is not None and topic.error != ErrorCode.NONE:
            return _topic_error(topic)
        cause = self.cluster.metadata_error
        reason = "no broker responds" if cause is None else cause.str()
        return KafkaError(KafkaError._MSG_TIMED_OUT, f"no metadata of {name}: {reason}")

    def _fail_waiting(self, name: str, error: KafkaError) -> None:
        batch = self._accumulator.take_waiting(name)
        if batch is not None:
            self.sender.fail_unsent([batch], error)


def _is_rejected(topic: TopicInfo) -> bool:
    """Whether it is useless to wait for the topic, such as one with an invalid name."""
    return topic.error != ErrorCode.NONE and not topic.error.retriable


def _topic_error(topic: TopicInfo) -> KafkaError:
    return broker_error(topic.error, f"topic {topic.name!r}: {KafkaError(topic.error).str()}")


def build_accumulator(settings: ProducerSettings, wake: Callable[[], object]) -> RecordAccumulator:
    partitioner = settings.partitioner
    if settings.ignore_keys:
        partitioner = "random"
    hash_key, sticks_null_keys, sticks_empty_keys = (
        BY_NAME[partitioner] if isinstance(partitioner, str) else (None, True, True)
    )
    return RecordAccumulator(
        wake,
        max_records=settings.buffer_messages,
        max_bytes=settings.buffer_memory,
        max_record_bytes=settings.max_request_size,
        batch_bytes=min(settings.batch_size, settings.max_request_size),
        batch_records=settings.batch_num_messages,
        linger_s=settings.linger_ms / 1000,
        hash_key=hash_key,
        sticks_null_keys=sticks_null_keys,
        sticks_empty_keys=sticks_empty_keys,
        partitioner=None if isinstance(partitioner, str) else partitioner,
        sticky_ms=settings.sticky_linger_ms,
        is_adaptive=settings.adaptive_partitioning,
        seed=random.getrandbits(63) | 1,
    )


def build_interceptors(settings: ProducerSettings) -> ProducerInterceptors | None:
    return ProducerInterceptors(settings.interceptors) if settings.interceptors else None


def merge_conf(conf: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a dictionary and those of keywords, which take precedence."""
    if (conf is None and not more) or not isinstance(conf, Mapping | None):
        raise TypeError(EXPECTED_SETTINGS)
    return {**(conf or {}), **more}
