"""`barnabas.Producer`: for code without a loop of its own, as `confluent_kafka.Producer` is."""

import time
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException, log_unhandled_error
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics import Metrics
from barnabas.client.producer import making
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._intake import Intake
from barnabas.client.producer.core import Facade, ProducerCore
from barnabas.client.producer.outbox import Bell, OnDelivery, Outbox
from barnabas.client.settings import ProducerSettings, producer_settings
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata
    from barnabas.client.producer.rows import OnRows

T = TypeVar("T")

_FOREVER = -1
_FOREVER_MS = 10**9


class Producer(Intake):
    """Sends records. Delivery reports come inside `poll` and `flush`, in the calling thread.

    producer = Producer({"bootstrap.servers": "localhost:9092"})
    producer.produce("greetings", "hello", on_delivery=print)
    producer.flush()
    """

    _accumulator: Accumulator
    _settings: ProducerSettings

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = producer_settings(making.merged(conf, more))
        self._settings = settings
        self._bell = Bell()
        self._wake = _Waking()
        self._accumulator = making.accumulator(settings, self._wake)
        super().__init__(
            self._accumulator,
            settings.on_delivery,
            making.interception(settings),
            None if settings.max_block_ms is None else self._in_time,
        )
        self._outbox = Outbox(self._accumulator, self._bell.ring)
        self._is_closed = False
        facade = Facade(self._outbox, _telling(settings, self._outbox), _refusing(self))
        self._thread = LoopThread.shared()
        try:
            self._core = self._thread.run(_start(settings, self._accumulator, facade))
        except BaseException:
            self._thread.release()
            raise
        self._wake.thread, self._wake.core = self._thread, self._core
        self._end = weakref.finalize(self, _end, self._thread, self._core)
        self._end.atexit = False  # its thread ends with the process anyway

    # Delivery

    def poll(self, timeout: float = _FOREVER) -> int:
        """Run callbacks; if there are none to run, wait for the first. How many were run."""
        self._require_open()
        deadline_s = _deadline(timeout)
        while True:
            rings = self._bell.rings
            served = self._outbox.serve()
            if served or not self._wait(rings, deadline_s):
                return served

    def flush(self, timeout: float = _FOREVER) -> int:
        """Send all that was produced, now, and wait for it; how much is left after the time."""
        self._require_open()
        deadline_s = _deadline(timeout)
        self._accumulator.flush(True)
        try:
            self._wake()
            while True:
                rings = self._bell.rings
                self._outbox.serve()
                if not len(self) or not self._wait(rings, deadline_s):
                    return len(self)
        finally:
            self._accumulator.flush(False)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Give up what is not delivered; it is reported as such by the next `poll`."""
        self._require_open()

        async def purge() -> None:
            self._core.purge(in_queue, in_flight)

        self._thread.run(purge())

    def __len__(self) -> int:
        """Records whose delivery is not known or not yet reported, and events not yet served."""
        return self._accumulator.held_records + self._outbox.events

    def __bool__(self) -> bool:
        return True

    # More records at once

    def produce_batch(
        self,
        topic: str,
        messages: Sequence[Mapping[str, Any]],
        partition: int = -1,
        callback: OnDelivery | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> int:
        """Produce dictionaries with `produce`'s arguments; how many were taken.

        What could not be taken has its error under `_error`.
        """
        if not isinstance(messages, list):
            raise TypeError("messages must be a list")
        taken = 0
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
            except KafkaException as failure:
                message["_error"] = failure.args[0]
            else:
                taken += 1
        return taken

    def produce_arrow(
        self,
        topic: str,
        rows: "pa.RecordBatch | pa.Table",
        on_delivery: "OnRows | None" = None,
    ) -> int:
        """Send the rows of a RecordBatch or Table: columns value[, key, partition, timestamp,
        headers]. Waits for room in the buffer. How many rows there were.

        `on_delivery` is called with an error or None and a number of rows, for some rows at a time.
        """
        from barnabas.client.producer.rows import Rows

        self._require_open()
        self.check()
        if not self._accumulator.partition_count(topic):
            deadline = Deadline.after(min(self._settings.delivery_timeout_ms, 60_000))
            self._thread.run(self._core.known(topic, deadline))
        encoder = Rows(self._settings, self._accumulator, topic)
        for batch in encoder.batches(rows, on_delivery):
            self._in_time(
                lambda it=batch: self._accumulator.append_encoded(topic, it.place[1], it),  # type: ignore[misc]
                self._settings.delivery_timeout_ms,
            )
        return int(rows.num_rows)

    # Transactions

    def init_transactions(self, timeout: float = _FOREVER) -> None:
        """Get ready for transactions; to be called once, before the first."""
        self._transact(lambda deadline: self._core.transactions.init(deadline), timeout)

    def begin_transaction(self) -> None:
        async def begin(_: Deadline) -> None:
            self._core.transactions.begin()

        self._transact(begin, _FOREVER)

    def send_offsets_to_transaction(
        self,
        positions: Sequence[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = _FOREVER,
    ) -> None:
        """Commit a consumer's offsets together with the records of the transaction."""
        offsets = list(positions)
        self._transact(
            lambda deadline: self._core.transactions.send_offsets(
                offsets, group_metadata, deadline
            ),
            timeout,
        )

    def commit_transaction(self, timeout: float = _FOREVER) -> None:
        """Flush, then commit. KafkaException: see its error's fatal(), txn_requires_abort()
        and retriable().
        """
        deadline_s = _deadline(timeout)
        self.flush(timeout)
        left_s = _FOREVER if deadline_s is None else max(0.0, deadline_s - time.monotonic())
        self._transact(lambda deadline: self._core.transactions.commit(deadline), left_s)

    def abort_transaction(self, timeout: float = _FOREVER) -> None:
        """Give up what is not sent, and have the rest ignored by who reads only what counts."""
        self._transact(lambda deadline: self._core.transactions.abort(deadline), timeout)
        self._outbox.serve()

    def prepare_transaction(self, timeout: float = _FOREVER) -> PreparedTransaction:
        """Flush, and leave the transaction open: `complete_transaction` ends it, or whoever is
        given what this returns (`AdminClient.complete_transactions`). After they have,
        `init_transactions` makes the producer ready for another.
        """
        self.flush(timeout)
        return self._transact(lambda deadline: self._core.transactions.prepare(deadline), timeout)

    def complete_transaction(self, decided: PreparedTransaction, timeout: float = _FOREVER) -> None:
        """Commit what was prepared if it is what was decided on; else abort it."""
        self._transact(
            lambda deadline: self._core.transactions.complete(decided, deadline), timeout
        )

    def _transact(self, call: Callable[[Deadline], Coroutine[Any, Any, T]], timeout: float) -> T:
        self._require_open()

        async def run() -> T:
            try:
                return await call(Deadline.after(_FOREVER_MS if timeout < 0 else timeout * 1000))
            finally:
                self._core.admit()

        return self._thread.run(run())

    # The cluster

    def list_topics(self, topic: str | None = None, timeout: float = _FOREVER) -> "ClusterMetadata":
        """The cluster with one topic, or with all it has."""
        from barnabas.client.admin.metadata import cluster_metadata

        return cluster_metadata(*self._describe(None if topic is None else [topic], timeout))

    def cluster_id(self, timeout: float = _FOREVER) -> str | None:
        told, *_ = self._describe([], timeout)
        return None if told.cluster_id is None else str(told.cluster_id)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """For connections made from now on."""
        self._require_open()
        self._thread.call(self._core.cluster.set_sasl_credentials, username, password)

    def metrics(self) -> Metrics:
        """Figures under the names that Java's producer has for them: "group:name:{tags}"."""
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

    # Life

    def close(self, timeout: float = _FOREVER) -> bool:
        """Flush, and hang up. Nothing can be produced afterwards."""
        if self._is_closed or self._thread.is_in_forked_child:
            return True
        self.refuse(RuntimeError("Producer has been closed"))
        try:
            left = self.flush(timeout)
        finally:
            self._is_closed = True
            self._end.detach()
            self._thread.run(self._core.close())
            self._thread.release()
        return left == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _in_time(self, attempt: Callable[[], object], timeout_ms: int | None = None) -> None:
        """Try until there is room, serving reports meanwhile; BufferError if the time is over."""
        if timeout_ms is None:
            timeout_ms = self._settings.max_block_ms or 0
        began_s = time.monotonic()
        while True:
            rings = self._bell.rings
            try:
                attempt()
                break
            except BufferError:
                self._wake()
                if not self._outbox.serve() and not self._wait(rings, began_s + timeout_ms / 1000):
                    self._core.statistics.exhausted(time.monotonic())
                    raise
        now_s = time.monotonic()
        self._core.statistics.waited(now_s - began_s, now_s)

    def _wait(self, rings: int, deadline_s: float | None) -> bool:
        """Wait for the bell to ring once more; whether there was time left to."""
        self._thread.check_not_forked()
        if deadline_s is None:
            self._bell.wait(rings, None)
            return True
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        self._bell.wait(rings, left_s)
        return True

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Producer has been closed")


class _Waking:
    """Has the core look at what is new."""

    __slots__ = ("core", "thread")

    core: ProducerCore
    thread: LoopThread

    def __call__(self) -> None:
        self.thread.call(self.core.step)


# Nothing on the loop holds the producer: one that nobody needs any more ends by itself.


def _telling(settings: ProducerSettings, outbox: Outbox) -> Callable[[KafkaError], None]:
    """What puts news of the connections where error_cb is called."""
    callback = settings.error_cb

    def tell(error: KafkaError) -> None:
        if callback is not None:
            outbox.put(lambda: callback(error))
        else:
            log_unhandled_error(settings, error)

    return tell


def _refusing(producer: Producer) -> Callable[[KafkaException | None], None]:
    known = weakref.ref(producer)

    def refuse(failure: KafkaException | None) -> None:
        it = known()
        if it is not None:
            it.refuse(failure)

    return refuse


async def _start(
    settings: ProducerSettings, accumulator: Accumulator, facade: Facade
) -> ProducerCore:
    return ProducerCore(settings, accumulator, facade)


def _end(thread: LoopThread, core: ProducerCore) -> None:
    """Does not wait: it may be the loop's own thread that finds that nobody needs the producer."""
    if not thread.is_in_forked_child:
        ended = thread.submit(core.close())
        ended.add_done_callback(lambda _: thread.release())


def _deadline(timeout: float) -> float | None:
    if not isinstance(timeout, int | float):
        raise TypeError(f"must be real number, not {type(timeout).__name__}")
    return None if timeout < 0 else time.monotonic() + timeout
