"""`barnabas.aio.Producer`: the same, on the loop of whoever uses it."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, log_unhandled_error
from barnabas.client.metrics import Metrics
from barnabas.client.producer import making
from barnabas.client.producer._delivery import AioIntake, Delivery
from barnabas.client.producer.core import Facade, ProducerCore
from barnabas.client.producer.outbox import Outbox
from barnabas.client.settings import producer_settings
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata
    from barnabas.client.producer.rows import OnRows

T = TypeVar("T")

_FOREVER = -1
_FOREVER_MS = 10**9


class AioProducer(AioIntake):
    """Made on a running loop, which it stays on.

    async with AioProducer({"bootstrap.servers": "localhost:9092"}) as producer:
        delivery = await producer.produce("greetings", "hello")
        message = await delivery

    Callbacks run on the loop, and may be coroutine functions.
    """

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        settings = producer_settings(making.merged(conf, more))
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._accumulator = making.accumulator(settings, self._wake)
        super().__init__(
            self._loop,
            self._accumulator,
            None if settings.on_delivery is None else self._called(settings.on_delivery),
            making.interception(settings),
        )
        self._outbox = Outbox(self._accumulator, self._ring)
        self._is_serving = False
        self._started: set[asyncio.Task[Any]] = set()  # of callbacks
        self._changed = asyncio.Event()  # something was delivered
        self._is_closed = False
        facade = Facade(self._outbox, self._tell, self.refuse)
        self._core = ProducerCore(settings, self._accumulator, facade)

    async def produce_arrow(
        self, topic: str, rows: "pa.RecordBatch | pa.Table", on_delivery: "OnRows | None" = None
    ) -> int:
        """Send the rows of a RecordBatch or Table: see `Producer.produce_arrow`."""
        from barnabas.client.producer.rows import Rows

        self._require_open()
        self.check()
        if not self._accumulator.partition_count(topic):
            deadline = Deadline.after(min(self._settings.delivery_timeout_ms, 60_000))
            await self._core.known(topic, deadline)
        encoder = Rows(self._settings, self._accumulator, topic)
        for batch in encoder.batches(
            rows, None if on_delivery is None else self._called(on_delivery)
        ):
            attempt = partial(self._accumulator.append_encoded, topic, batch.place[1], batch)
            await self._in_time(attempt, self._settings.delivery_timeout_ms)
            await asyncio.sleep(0)  # encoding takes its time, and others want theirs
        return int(rows.num_rows)

    async def poll(self, timeout: float = 0) -> int:
        """Nothing has to be polled for here; it lets what is due run."""
        await asyncio.sleep(0)
        return 0

    async def flush(self, timeout: float = _FOREVER) -> int:
        """Send all that was produced, now, and wait for it; how much is left after the time."""
        self._require_open()
        deadline = _deadline(timeout)
        self._accumulator.flush(True)
        try:
            self._core.step()
            while len(self) and not deadline.has_passed:
                self._changed.clear()
                try:
                    await asyncio.wait_for(self._changed.wait(), deadline.remaining_ms() / 1000)
                except TimeoutError:
                    break
            return len(self)
        finally:
            self._accumulator.flush(False)

    async def purge(
        self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True
    ) -> None:
        """Give up what is not delivered."""
        self._require_open()
        self._core.purge(in_queue, in_flight)

    def __len__(self) -> int:
        """Records whose delivery is not known or not yet reported."""
        return self._accumulator.held_records

    def __bool__(self) -> bool:
        return True

    # Transactions

    async def init_transactions(self, timeout: float = _FOREVER) -> None:
        """Get ready for transactions; to be called once, before the first."""
        await self._transact(self._core.transactions.init(_deadline(timeout)))

    async def begin_transaction(self) -> None:
        self._require_open()
        self._core.transactions.begin()
        self._core.admit()

    async def send_offsets_to_transaction(
        self,
        positions: Sequence[TopicPartition],
        group_metadata: ConsumerGroupMetadata,
        timeout: float = _FOREVER,
    ) -> None:
        """Commit a consumer's offsets together with the records of the transaction."""
        sending = self._core.transactions.send_offsets(
            list(positions), group_metadata, _deadline(timeout)
        )
        await self._transact(sending)

    async def commit_transaction(self, timeout: float = _FOREVER) -> None:
        await self._transact(self._core.transactions.commit(_deadline(timeout)))

    async def abort_transaction(self, timeout: float = _FOREVER) -> None:
        await self._transact(self._core.transactions.abort(_deadline(timeout)))

    async def prepare_transaction(self, timeout: float = _FOREVER) -> PreparedTransaction:
        """Have all records written and leave the transaction open: see `Producer`."""
        return await self._transact(self._core.transactions.prepare(_deadline(timeout)))

    async def complete_transaction(
        self, decided: PreparedTransaction, timeout: float = _FOREVER
    ) -> None:
        """Commit what was prepared if it is what was decided on; else abort it."""
        await self._transact(self._core.transactions.complete(decided, _deadline(timeout)))

    async def _transact(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            return await call
        finally:
            self._core.admit()

    # The cluster

    async def list_topics(
        self, topic: str | None = None, timeout: float = _FOREVER
    ) -> "ClusterMetadata":
        """The cluster with one topic, or with all it has."""
        from barnabas.client.admin.metadata import cluster_metadata

        return cluster_metadata(*await self._describe(None if topic is None else [topic], timeout))

    async def cluster_id(self, timeout: float = _FOREVER) -> str | None:
        told, *_ = await self._describe([], timeout)
        return None if told.cluster_id is None else str(told.cluster_id)

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """For connections made from now on."""
        self._core.cluster.set_sasl_credentials(username, password)

    def metrics(self) -> Metrics:
        """Figures under the names that Java's producer has for them: "group:name:{tags}"."""
        return self._core.metrics()

    async def _describe(self, topics: list[str] | None, timeout: float) -> tuple[Any, ...]:
        self._require_open()
        timeout_ms = (
            self._settings.default_api_timeout_ms if timeout < 0 else max(1, int(timeout * 1000))
        )
        return await self._core.cluster.describe_with_node(topics, timeout_ms=timeout_ms)

    # Life

    async def close(self, timeout: float = _FOREVER) -> bool:
        """Flush, and hang up. Nothing can be produced afterwards."""
        if self._is_closed:
            return True
        self.refuse(RuntimeError("Producer has been closed"))
        try:
            left = await self.flush(timeout)
        finally:
            self._is_closed = True
            await self._core.close()
        return left == 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _wait_for_room(self, delivery: Delivery, *record: Any) -> Delivery:
        await self._in_time(partial(self.retry, delivery, *record), self._settings.max_block_ms)
        return delivery

    async def _give_way(self, delivery: Delivery) -> Delivery:
        await asyncio.sleep(0)
        return delivery

    def _wake(self) -> None:
        self.is_due = True
        self._loop.call_soon(self._step)

    def _step(self) -> None:
        self.is_due = False
        self._core.step()

    def _ring(self) -> None:
        if not self._is_serving:
            self._is_serving = True
            self._loop.call_soon(self._serve)

    def _serve(self) -> None:
        self._is_serving = False
        try:
            self._outbox.serve()
        except Exception as failure:
            # Nobody called: the loop's handler is who hears of it, and the rest goes on.
            self._ring()
            self._loop.call_exception_handler(
                {"message": "a callback of a producer failed", "exception": failure}
            )
        self._changed.set()

    def _tell(self, error: KafkaError) -> None:
        if self._settings.error_cb is not None:
            self._outbox.put(partial(self._called(self._settings.error_cb), error))
        else:
            log_unhandled_error(self._settings, error)

    async def _in_time(self, attempt: Callable[[], object], timeout_ms: int | None) -> None:
        """Try until there is room; BufferError if the time is over. None waits for ever."""
        deadline = Deadline.after(_FOREVER_MS if timeout_ms is None else timeout_ms)
        while True:
            self._changed.clear()
            try:
                attempt()
                return
            except BufferError:
                if deadline.has_passed:
                    raise
            self._core.step()
            try:
                await asyncio.wait_for(self._changed.wait(), deadline.remaining_ms() / 1000)
            except TimeoutError:
                continue

    def _called(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """A callback that may be a coroutine function, as one to be called."""
        if not inspect.iscoroutinefunction(callback):
            return callback

        def start(*arguments: Any) -> None:
            task = self._loop.create_task(callback(*arguments))
            self._started.add(task)
            task.add_done_callback(self._started.discard)

        return start

    def _require_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("Producer has been closed")


def _deadline(timeout: float) -> Deadline:
    return Deadline.after(_FOREVER_MS if timeout < 0 else timeout * 1000)
