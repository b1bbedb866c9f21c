"""`barnabas.aio.Producer`: the producer on the caller's event loop."""

import asyncio
import inspect
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client.client_finalizer import ClientFinalizer
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, log_unhandled_error
from barnabas.client.metrics import Metrics
from barnabas.client.producer._aio_producer_base import AioProducerBase, DeliveryFuture
from barnabas.client.producer.core import (
    ProducerCallbacks,
    ProducerCore,
    build_accumulator,
    build_interceptors,
    merge_conf,
)
from barnabas.client.producer.delivery_reports import DeliveryReports
from barnabas.client.producer.lost_records import log_undelivered
from barnabas.client.settings import ProducerSettings, producer_settings
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata
    from barnabas.client.producer.arrow_encoder import OnRows

T = TypeVar("T")

_NO_TIMEOUT = -1
_NO_TIMEOUT_MS = 10**9


class AioProducer(AioProducerBase):
    """A producer on the running event loop.

    async with AioProducer({"bootstrap.servers": "localhost:9092"}) as producer:
        delivery = await producer.produce("greetings", "hello")
        message = await delivery

    Callbacks run on the loop and may be coroutine functions.
    """

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = producer_settings(merge_conf(conf, more))
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._accumulator = build_accumulator(settings, _weak(self._wake))
        super().__init__(
            self._loop,
            self._accumulator,
            None if settings.on_delivery is None else self._as_callback(settings.on_delivery),
            build_interceptors(settings),
        )
        self._reports = DeliveryReports(self._accumulator, _weak(self._notify))
        self._is_notified = False
        self._callback_tasks: set[asyncio.Task[Any]] = set()  # coroutines of callbacks
        self._delivered = asyncio.Event()  # something was delivered
        self._is_closed = False
        callbacks = ProducerCallbacks(self._reports, self._on_error, self.set_produce_error)
        self._core = ProducerCore(settings, self._accumulator, callbacks)
        self._finalizer = ClientFinalizer(self, partial(_log_lost, settings, self._reports))

    async def produce_arrow(
        self, topic: str, rows: "pa.RecordBatch | pa.Table", on_delivery: "OnRows | None" = None
    ) -> int:
        """Sends the rows of a RecordBatch or Table: see `Producer.produce_arrow`."""
        from barnabas.client.producer.arrow_encoder import ArrowBatchEncoder

        self._require_open()
        self.raise_produce_error()
        if not self._accumulator.partition_count(topic):
            deadline = Deadline.after(min(self._settings.delivery_timeout_ms, 60_000))
            await self._core.wait_for_topic(topic, deadline)
        encoder = ArrowBatchEncoder(self._settings, self._accumulator, topic)
        for batch in encoder.batches(
            rows, None if on_delivery is None else self._as_callback(on_delivery)
        ):
            attempt = partial(self._accumulator.append_encoded, topic, batch.partition, batch)
            await self._retry_until_space(attempt, self._settings.delivery_timeout_ms)
            await asyncio.sleep(0)  # encoding takes long: let the loop run
        return int(rows.num_rows)

    async def poll(self, timeout: float = 0) -> int:
        """Lets the loop run; callbacks do not need polling here."""
        await asyncio.sleep(0)
        return 0

    async def flush(self, timeout: float = _NO_TIMEOUT) -> int:
        """Sends all records now and waits for them. Returns how many are left after the timeout."""
        self._require_open()
        deadline = _deadline(timeout)
        self._accumulator.begin_flush()
        try:
            self._core.step()
            while len(self) and not deadline.has_passed:
                self._delivered.clear()
                try:
                    await asyncio.wait_for(self._delivered.wait(), deadline.remaining_ms() / 1000)
                except TimeoutError:
                    break
            self._reports.has_flush_timed_out = len(self) > 0
            return len(self)
        finally:
            self._accumulator.end_flush()

    async def purge(
        self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True
    ) -> None:
        """Fails the records that are not delivered."""
        self._require_open()
        self._core.purge(in_queue, in_flight)

    def __len__(self) -> int:
        """The records whose delivery is not known or not reported yet."""
        return self._accumulator.buffered_records

    def __bool__(self) -> bool:
        return True

    # Transactions

    async def init_transactions(self, timeout: float = _NO_TIMEOUT) -> None:
        """Prepares for transactions; to be called once, before the first."""
        await self._transact(self._core.transaction_manager.init(_deadline(timeout)))

    async def begin_transaction(self) -> None:
        self._require_open()
        self._core.transaction_manager.begin()
        self._core.update_produce_error()

    async def send_offsets_to_transaction(
        self,
        positions: Sequence[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = _NO_TIMEOUT,
    ) -> None:
        """Commits a consumer's offsets together with the records of the transaction."""
        sending = self._core.transaction_manager.send_offsets(
            list(positions), group_metadata, _deadline(timeout)
        )
        await self._transact(sending)

    async def commit_transaction(self, timeout: float = _NO_TIMEOUT) -> None:
        await self._transact(self._core.transaction_manager.commit(_deadline(timeout)))

    async def abort_transaction(self, timeout: float = _NO_TIMEOUT) -> None:
        await self._transact(self._core.transaction_manager.abort(_deadline(timeout)))

    async def prepare_transaction(self, timeout: float = _NO_TIMEOUT) -> PreparedTransaction:
        """Flushes and leaves the transaction open: see `Producer.prepare_transaction`."""
        return await self._transact(self._core.transaction_manager.prepare(_deadline(timeout)))

    async def complete_transaction(
        self, decided: PreparedTransaction, timeout: float = _NO_TIMEOUT
    ) -> None:
        """Commits the prepared transaction if it is the one that was decided on; else aborts it."""
        await self._transact(self._core.transaction_manager.complete(decided, _deadline(timeout)))

    async def _transact(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            return await call
        finally:
            self._core.update_produce_error()

    # The cluster

    async def list_topics(
        self, topic: str | None = None, timeout: float = _NO_TIMEOUT
    ) -> "ClusterMetadata":
        """Returns the metadata of the cluster with one topic, or with all topics."""
        from barnabas.client.admin.metadata import cluster_metadata

        return cluster_metadata(*await self._describe(None if topic is None else [topic], timeout))

    async def cluster_id(self, timeout: float = _NO_TIMEOUT) -> str | None:
        response, *_ = await self._describe([], timeout)
        return None if response.cluster_id is None else str(response.cluster_id)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Sets the credentials of connections made from now on."""
        self._core.cluster.set_sasl_credentials(username, password)

    def metrics(self) -> Metrics:
        """Returns the metrics under the names of Java's producer: "group:name:{tags}"."""
        return self._core.metrics()

    async def _describe(self, topics: list[str] | None, timeout: float) -> tuple[Any, ...]:
        self._require_open()
        timeout_ms = (
            self._settings.default_api_timeout_ms if timeout < 0 else max(1, int(timeout * 1000))
        )
        return await self._core.cluster.describe_with_node(topics, timeout_ms=timeout_ms)

    # Closing

    async def close(self, timeout: float = _NO_TIMEOUT) -> bool:
        """Flushes and closes the connections. Nothing can be produced afterwards."""
        if self._is_closed:
            return True
        self.set_produce_error(RuntimeError("Producer has been closed"))
        deadline = _deadline(timeout)
        try:
            left = await self.flush(timeout)
        finally:
            self._is_closed = True
            self._finalizer.detach()
            is_aborted = await self._core.close(deadline.remaining_ms())
        return left == 0 and is_aborted

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _wait_for_space(self, delivery: DeliveryFuture, *record: Any) -> DeliveryFuture:
        await self._retry_until_space(
            partial(self.retry_append, delivery, *record), self._settings.max_block_ms
        )
        return delivery

    async def _yield_to_loop(self, delivery: DeliveryFuture) -> DeliveryFuture:
        await asyncio.sleep(0)
        return delivery

    def _wake(self) -> None:
        self.is_step_scheduled = True
        self._loop.call_soon(self._step)

    def _step(self) -> None:
        self.is_step_scheduled = False
        self._core.step()

    def _notify(self) -> None:
        if not self._is_notified:
            self._is_notified = True
            self._loop.call_soon(self._run_callbacks)

    def _run_callbacks(self) -> None:
        self._is_notified = False
        try:
            self._reports.run_callbacks()
        except Exception as error:
            # There is no caller to raise to: report to the loop, and continue with the rest.
            self._notify()
            self._loop.call_exception_handler(
                {"message": "A callback of a producer failed", "exception": error}
            )
        self._delivered.set()

    def _on_error(self, error: KafkaError) -> None:
        if self._settings.error_cb is not None:
            self._reports.put(partial(self._as_callback(self._settings.error_cb), error))
        else:
            log_unhandled_error(self._settings, error)

    async def _retry_until_space(
        self, attempt: Callable[[], object], timeout_ms: int | None
    ) -> None:
        """Retries until there is space. Raises BufferError after the timeout; None waits."""
        deadline = Deadline.after(_NO_TIMEOUT_MS if timeout_ms is None else timeout_ms)
        while True:
            self._delivered.clear()
            try:
                attempt()
                return
            except BufferError:
                if deadline.has_passed:
                    raise
            self._core.step()
            try:
                await asyncio.wait_for(self._delivered.wait(), deadline.remaining_ms() / 1000)
            except TimeoutError:
                continue

    def _as_callback(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a plain callback for one that may be a coroutine function."""
        if not inspect.iscoroutinefunction(callback):
            return callback

        def start(*arguments: Any) -> None:
            task = self._loop.create_task(callback(*arguments))
            self._callback_tasks.add(task)
            task.add_done_callback(self._callback_tasks.discard)

        return start

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Producer has been closed")


def _weak(method: Callable[[], None]) -> Callable[[], None]:
    """Returns a function that calls a method as long as its object is there."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        method = reference()
        if method is not None:
            method()

    return call


def _log_lost(settings: ProducerSettings, reports: DeliveryReports) -> None:
    """A dropped producer delivers as long as its loop runs; what is left then is lost."""
    log_undelivered(settings, reports.undelivered_count, has_timed_out=reports.has_flush_timed_out)


def _deadline(timeout: float) -> Deadline:
    return Deadline.after(_NO_TIMEOUT_MS if timeout < 0 else timeout * 1000)
