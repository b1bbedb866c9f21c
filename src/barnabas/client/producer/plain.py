"""`barnabas.Producer`: the producer for code without an event loop, like confluent_kafka's."""

import math
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client.client_finalizer import ClientFinalizer
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException, log_unhandled_error
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics import Metrics
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._producer_base import ProducerBase
from barnabas.client.producer.core import (
    ProducerCallbacks,
    ProducerCore,
    build_accumulator,
    build_interceptors,
    merge_conf,
)
from barnabas.client.producer.delivery_reports import DeliveryReports, Notifier, OnDelivery
from barnabas.client.settings import ProducerSettings, producer_settings
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata
    from barnabas.client.producer.arrow_encoder import OnRows

T = TypeVar("T")

_NO_TIMEOUT = -1
_NO_TIMEOUT_MS = 10**9


class Producer(ProducerBase):
    """Sends records. Delivery reports come inside `poll` and `flush`, in the calling thread.

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    producer.produce("greetings", "hello", on_delivery=print)
    producer.flush()
    """

    _accumulator: RecordAccumulator
    _settings: ProducerSettings

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = producer_settings(merge_conf(conf, more))
        self._settings = settings
        self._notifier = Notifier()
        self._wake = _CoreWaker()
        self._accumulator = build_accumulator(settings, self._wake)
        super().__init__(
            self._accumulator,
            settings.on_delivery,
            build_interceptors(settings),
            None if settings.max_block_ms is None else self._retry_until_space,
        )
        self._reports = DeliveryReports(self._accumulator, self._notifier.notify)
        self._is_closed = False
        callbacks = ProducerCallbacks(
            self._reports, _error_handler(settings, self._reports), _produce_error_setter(self)
        )
        self._thread = LoopThread.shared()
        try:
            self._core = self._thread.run(_start_core(settings, self._accumulator, callbacks))
        except BaseException:
            self._thread.release()
            raise
        self._wake.thread, self._wake.core = self._thread, self._core
        self._finalizer = ClientFinalizer(self, partial(_close_core, self._thread, self._core))

    # Delivery

    def poll(self, timeout: float = _NO_TIMEOUT) -> int:
        """Runs the callbacks, or waits for the first one. Returns how many have run."""
        self._require_open()
        deadline_s = _deadline(timeout)
        while True:
            notifications = self._notifier.count
            count = self._reports.run_callbacks()
            if count or not self._wait(notifications, deadline_s):
                return count

    def flush(self, timeout: float = _NO_TIMEOUT) -> int:
        """Sends all records now and waits for them. Returns how many are left after the timeout."""
        self._require_open()
        deadline_s = _deadline(timeout)
        self._accumulator.begin_flush()
        try:
            self._wake()
            while True:
                notifications = self._notifier.count
                self._reports.run_callbacks()
                if not len(self) or not self._wait(notifications, deadline_s):
                    self._reports.has_flush_timed_out = len(self) > 0
                    return len(self)
        finally:
            self._accumulator.end_flush()

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Fails the records that are not delivered; the next `poll` reports them."""
        self._require_open()

        async def purge() -> None:
            self._core.purge(in_queue, in_flight)

        self._thread.run(purge())

    def __len__(self) -> int:
        """The records whose delivery is not known or not reported yet, and the waiting events."""
        return self._accumulator.buffered_records + self._reports.event_count

    def __bool__(self) -> bool:
        return True

    # Many records at once

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[Mapping[str, Any]],
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> int:
        """Produces records, dictionaries of `produce`'s arguments. Returns how many.

        A dictionary that could not be produced gets its error under `_error`.
        """
        if not isinstance(messages, list):
            raise TypeError("messages must be a list")
        produced = 0
        for message in messages:
            try:
                self.produce(
                    topic,
                    message.get("value"),
                    message.get("key"),
                    message.get("partition", partition),
                    message.get("callback") or callback,
                    message.get("on_delivery") or on_delivery,
                    message.get("timestamp", 0),
                    message.get("headers"),
                )
            except BufferError:
                message["_error"] = KafkaError(KafkaError._QUEUE_FULL)
            except KafkaException as exception:
                message["_error"] = exception.args[0]
            else:
                produced += 1
        return produced

    def produce_arrow(
        self,
        topic: str,
        rows: "pa.RecordBatch | pa.Table",
        on_delivery: "OnRows | None" = None,
    ) -> int:
        """Sends the rows of a RecordBatch or Table: columns value[, key, partition, timestamp,
        headers]. Waits for space in the buffer. Returns the number of rows.

        `on_delivery` is called with an error or None and a number of rows, for some rows at a time.
        """
        from barnabas.client.producer.arrow_encoder import ArrowBatchEncoder

        self._require_open()
        self.raise_produce_error()
        if not self._accumulator.partition_count(topic):
            deadline = Deadline.after(min(self._settings.delivery_timeout_ms, 60_000))
            self._thread.run(self._core.wait_for_topic(topic, deadline))
        encoder = ArrowBatchEncoder(self._settings, self._accumulator, topic)
        for batch in encoder.batches(rows, on_delivery):
            self._retry_until_space(
                partial(self._accumulator.append_encoded, topic, batch.partition, batch),
                self._settings.delivery_timeout_ms,
            )
        return int(rows.num_rows)

    # Transactions

    def init_transactions(self, timeout: float = _NO_TIMEOUT) -> None:
        """Prepares for transactions; to be called once, before the first."""
        self._transact(lambda deadline: self._core.transaction_manager.init(deadline), timeout)

    def begin_transaction(self) -> None:
        async def begin(_: Deadline) -> None:
            self._core.transaction_manager.begin()

        self._transact(begin, _NO_TIMEOUT)

    def send_offsets_to_transaction(
        self,
        positions: Sequence[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = _NO_TIMEOUT,
    ) -> None:
        """Commits a consumer's offsets together with the records of the transaction."""
        offsets = list(positions)
        self._transact(
            lambda deadline: self._core.transaction_manager.send_offsets(
                offsets, group_metadata, deadline
            ),
            timeout,
        )

    def commit_transaction(self, timeout: float = _NO_TIMEOUT) -> None:
        """Flushes, then commits.

        Raises KafkaException: its error's fatal(), txn_requires_abort() and retriable() tell what
        to do.
        """
        deadline_s = _deadline(timeout)
        self.flush(timeout)
        left_s = _NO_TIMEOUT if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        self._transact(lambda deadline: self._core.transaction_manager.commit(deadline), left_s)

    def abort_transaction(self, timeout: float = _NO_TIMEOUT) -> None:
        """Aborts: unsent records fail, and read_committed consumers skip the sent ones."""
        self._transact(lambda deadline: self._core.transaction_manager.abort(deadline), timeout)
        self._reports.run_callbacks()

    def prepare_transaction(self, timeout: float = _NO_TIMEOUT) -> PreparedTransaction:
        """Flushes and leaves the transaction open.

        `complete_transaction` ends it, or any process with the returned value does
        (`AdminClient.complete_transactions`). After that, `init_transactions` makes the producer
        ready for another transaction.
        """
        self.flush(timeout)
        return self._transact(
            lambda deadline: self._core.transaction_manager.prepare(deadline), timeout
        )

    def complete_transaction(
        self, decided: PreparedTransaction, timeout: float = _NO_TIMEOUT
    ) -> None:
        """Commits the prepared transaction if it is the one that was decided on; else aborts it."""
        self._transact(
            lambda deadline: self._core.transaction_manager.complete(decided, deadline), timeout
        )

    def _transact(self, call: Callable[[Deadline], Coroutine[Any, Any, T]], timeout: float) -> T:
        self._require_open()

        async def run() -> T:
            try:
                return await call(Deadline.after(_NO_TIMEOUT_MS if timeout < 0 else timeout * 1000))
            finally:
                self._core.update_produce_error()

        return self._thread.run(run())

    # The cluster

    def list_topics(
        self, topic: str | None = None, timeout: float = _NO_TIMEOUT
    ) -> "ClusterMetadata":
        """Returns the metadata of the cluster with one topic, or with all topics."""
        from barnabas.client.admin.metadata import cluster_metadata

        return cluster_metadata(*self._describe(None if topic is None else [topic], timeout))

    def cluster_id(self, timeout: float = _NO_TIMEOUT) -> str | None:
        response, *_ = self._describe([], timeout)
        return None if response.cluster_id is None else str(response.cluster_id)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Sets the credentials of connections made from now on."""
        self._require_open()
        self._thread.call(self._core.cluster.set_sasl_credentials, username, password)

    def metrics(self) -> Metrics:
        """Returns the metrics under the names of Java's producer: "group:name:{tags}"."""
        self._require_open()

        async def metrics() -> Metrics:
            return self._core.metrics()

        return self._thread.run(metrics())

    def _describe(self, topics: list[str] | None, timeout: float) -> tuple[Any, ...]:
        self._require_open()
        timeout_ms = (
            self._settings.default_api_timeout_ms if timeout < 0 else max(1, int(timeout * 1000))
        )
        return self._thread.run(
            self._core.cluster.describe_with_node(topics, timeout_ms=timeout_ms)
        )

    # Closing

    def close(self, timeout: float = _NO_TIMEOUT) -> bool:
        """Flushes and closes the connections. Nothing can be produced afterwards."""
        if self._is_closed or self._thread.is_in_forked_child:
            return True
        self.set_produce_error(RuntimeError("Producer has been closed"))
        deadline_s = _deadline(timeout)
        try:
            left = self.flush(timeout)
        finally:
            self._is_closed = True
            self._finalizer.detach()
            left_s = math.inf if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            is_aborted = self._thread.run(self._core.close(left_s * 1000))
            self._thread.release()
        return left == 0 and is_aborted

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _retry_until_space(
        self, attempt: Callable[[], object], timeout_ms: int | None = None
    ) -> None:
        """Retries until there is space, running callbacks. Raises BufferError after the timeout."""
        if timeout_ms is None:
            timeout_ms = self._settings.max_block_ms or 0
        started_s = time.monotonic()
        while True:
            notifications = self._notifier.count
            try:
                attempt()
                break
            except BufferError:
                self._wake()
                if not self._reports.run_callbacks() and not self._wait(
                    notifications, started_s + timeout_ms / 1000
                ):
                    self._core.producer_metrics.on_buffer_exhausted(time.monotonic())
                    raise
        now_s = time.monotonic()
        self._core.producer_metrics.on_buffer_wait(now_s - started_s, now_s)

    def _wait(self, notifications: int, deadline_s: float | None) -> bool:
        """Waits for another notification. Returns False without waiting after the deadline."""
        self._thread.check_not_forked()
        if deadline_s is None:
            self._notifier.wait(notifications, None)
            return True
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        self._notifier.wait(notifications, left_s)
        return True

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Producer has been closed")


class _CoreWaker:
    """Lets the core step on its loop."""

    __slots__ = ("core", "thread")

    core: ProducerCore
    thread: LoopThread

    def __call__(self) -> None:
        self.thread.call(self.core.step)


# Nothing on the loop refers to the producer: one without references is closed by its finalizer.


def _error_handler(
    settings: ProducerSettings, reports: DeliveryReports
) -> Callable[[KafkaError], None]:
    """Returns a function that lets `poll` call error_cb with an error."""
    callback = settings.error_cb

    def on_error(error: KafkaError) -> None:
        if callback is not None:
            reports.put(lambda: callback(error))
        else:
            log_unhandled_error(settings, error)

    return on_error


def _produce_error_setter(producer: Producer) -> Callable[[KafkaException | None], None]:
    reference = weakref.ref(producer)

    def set_produce_error(error: KafkaException | None) -> None:
        producer = reference()
        if producer is not None:
            producer.set_produce_error(error)

    return set_produce_error


async def _start_core(
    settings: ProducerSettings, accumulator: RecordAccumulator, callbacks: ProducerCallbacks
) -> ProducerCore:
    return ProducerCore(settings, accumulator, callbacks)


def _close_core(thread: LoopThread, core: ProducerCore) -> "Future[bool]":
    """Closes without waiting: the finalizer may run in the thread of the loop itself."""
    return thread.close_client(core.close())


def _deadline(timeout: float) -> float | None:
    if not isinstance(timeout, int | float):
        raise TypeError(f"must be real number, not {type(timeout).__name__}")
    return None if timeout < 0 else time.monotonic() + timeout
