"""`barnabas.aio.Consumer`: the consumer on the caller's event loop.

    async with Consumer(conf) as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            ...

Callbacks run in `poll` and the other calls that wait, and may be coroutine functions.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client._message import Message
from barnabas.client.consumer import validation
from barnabas.client.consumer._poller import AioPoller
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.fetch_buffer import AioFetchBuffer
from barnabas.client.consumer.user_events import CallbackEvent, RebalanceEvent, RebalanceType
from barnabas.client.metrics import Metrics
from barnabas.client.values import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata

T = TypeVar("T")
OnRebalance = Callable[["AioConsumer", list[TopicPartition]], Any]


class AioConsumer(AioPoller):
    """Reads messages of topics, alone or as a member of a group. Needs a running event loop."""

    def __init__(self, *conf: Any, **more: Any) -> None:
        super().__init__()
        self._buffer = AioFetchBuffer(self)
        self._callbacks: dict[RebalanceType, OnRebalance | None] = {}
        self._is_closed = False
        self._core = ConsumerCore(validation.parse_settings(conf, more), self, self._buffer)

    # Messages: `poll` and the iteration are inherited.

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns `num_messages` messages, or those that come within `timeout` seconds.

        -1 waits as long as it takes.
        """
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = _deadline_s(timeout)
        await asyncio.sleep(0)  # other tasks run once per fetch, however fast the user polls
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # callbacks may raise: they run in the next call
                await self._run_callbacks()
            error = self._buffer.advance()
            if error is not None:
                messages.append(error.message)
            elif self.current_fetch is not None:
                messages += self.take(num_messages - len(messages))
            if len(messages) >= num_messages:
                return messages
            if error is None and self.current_fetch is None and not await self._wait(deadline_s):
                return messages

    async def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
        """Returns `max_rows` rows, or those that come within `timeout` seconds.

        -1 waits as long as it takes. The columns are topic, partition, offset, timestamp, key,
        value and headers.
        """
        from barnabas.client.consumer.arrow import ArrowBatchBuilder

        builder = ArrowBatchBuilder(max_rows, self._buffer, self)
        deadline_s = _deadline_s(timeout)
        while True:
            if self.has_events or self._is_closed:
                if builder.rows:
                    break
                await self._run_callbacks()
            self.poll_count += 1
            builder.take()
            if builder.is_full or not await self._wait(deadline_s):
                break
        return builder.build()

    async def _poll(self, timeout: float) -> Message | None:
        deadline_s = _deadline_s(timeout)
        await asyncio.sleep(0)  # other tasks run once per fetch, however fast the user polls
        while True:
            await self._run_callbacks()
            message = self._buffer.next_message()
            if message is not None:
                return message
            if not await self._wait(deadline_s):
                return None

    async def _next(self) -> Message:
        await asyncio.sleep(0)
        while not self._is_closed:
            await self._run_events()
            message = self._buffer.next_message()
            if message is not None:
                return message
            await self._wait(None)
        raise StopAsyncIteration

    async def _wait(self, deadline_s: float | None) -> bool:
        self._core.is_user_waiting = True
        try:
            remaining_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            return await self._buffer.wait(remaining_s)
        finally:
            self._core.is_user_waiting = False

    # Callbacks

    async def _run_callbacks(self) -> None:
        """Runs the callbacks that wait for the user to poll."""
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        await self._run_events()

    async def _run_events(self) -> None:
        while (event := self._buffer.next_event()) is not None:
            if isinstance(event, CallbackEvent):
                await _await_result(event.function(*event.arguments))
            else:
                await self._run_rebalance(event)

    async def _run_rebalance(self, rebalance: RebalanceEvent) -> None:
        callback = self._callbacks.get(rebalance.type)
        self._core.begin_rebalance(rebalance)
        try:
            if callback is not None:
                partitions = [TopicPartition(*partition) for partition in rebalance.partitions]
                await _await_result(callback(self, partitions))
        finally:
            await self._core.end_rebalance(rebalance)

    # Subscription and assignment

    async def subscribe(
        self,
        topics: list[str],
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Subscribes to topics as a member of the group, instead of the last subscription.

        A name that starts with `^` is a regular expression of topic names. The callbacks run in
        `poll`, with this consumer and the partitions; `on_lost` defaults to `on_revoke`.
        """
        names = validation.topics(topics)
        on_revoke = validation.callback(on_revoke, "on_revoke")
        callbacks = {
            RebalanceType.ASSIGNED: validation.callback(on_assign, "on_assign"),
            RebalanceType.REVOKED: on_revoke,
            RebalanceType.LOST: validation.callback(on_lost, "on_lost") or on_revoke,
        }
        core = self._open_core()
        self._callbacks = callbacks
        await core.subscribe(names)

    async def unsubscribe(self) -> None:
        """Leaves the group, or unassigns the assigned partitions."""
        await self._run_with_callbacks(self._open_core().unsubscribe())

    async def assign(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions alone, from their offsets or from the committed ones."""
        await self._open_core().assign(validation.distinct_topic_partitions(partitions))

    async def unassign(self) -> None:
        await self._open_core().unassign()

    async def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions besides the assigned ones."""
        self._open_core().incremental_assign(validation.distinct_topic_partitions(partitions))

    async def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        await self._open_core().incremental_unassign(validation.topic_partitions(partitions))

    async def assignment(self) -> list[TopicPartition]:
        return self._open_core().offset_queries.assignment()

    async def pause(self, partitions: list[TopicPartition]) -> None:
        """Delivers no messages of these partitions until `resume`; they stay assigned."""
        self._open_core().pause(validation.topic_partitions(partitions))

    async def resume(self, partitions: list[TopicPartition]) -> None:
        self._open_core().resume(validation.topic_partitions(partitions))

    # Offsets

    async def seek(self, partition: TopicPartition) -> None:
        """Continues to read the assigned partition at its offset."""
        self._open_core().seek(validation.topic_partition(partition))

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Returns the offsets after the last consumed messages; OFFSET_INVALID without one."""
        return self._open_core().offset_queries.positions(validation.topic_partitions(partitions))

    async def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        topic_partitions, timeout_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return await self._open_core().offset_queries.committed(topic_partitions, timeout_ms)

    async def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commits the offset after a message, these offsets, or all stored offsets.

        If `asynchronous`, it returns at once, and `on_commit` is called with the outcome.
        Otherwise it returns the committed offsets, or raises KafkaException.
        """
        core = self._open_core()
        to_commit = validation.offsets_to_commit(message, offsets, "commit")
        return await core.commit(to_commit, asynchronous=asynchronous)

    async def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Stores offsets for the next commit; needs `enable.auto.offset.store` to be false."""
        core = self._open_core()
        to_store = validation.offsets_to_commit(message, offsets, "store")
        if to_store is None:
            raise ValueError("expected either message or offsets")
        return core.offset_committer.store(to_store)

    async def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Returns the first offsets at or after timestamps, in ms, given as the offsets."""
        topic_partitions, timeout_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return await self._open_core().offset_queries.offsets_for_times(
            topic_partitions, timeout_ms
        )

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Returns the log start offset and the high watermark of a partition.

        If `cached`, they are those of the last fetch, and no request is sent.
        """
        core, topic_partition = self._open_core(), validation.topic_partition(partition)
        if cached:
            return core.offset_queries.cached_watermarks(topic_partition)
        return await core.offset_queries.watermarks(
            topic_partition, validation.timeout_milliseconds(timeout)
        )

    async def lag(
        self, partitions: list[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """Returns the lag of partitions (default: all assigned); -1 if it is not known yet."""
        core = self._open_core()
        return core.offset_queries.lags(
            None if partitions is None else validation.topic_partitions(partitions)
        )

    # The cluster and the group

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> "ClusterMetadata":
        return await self._open_core().offset_queries.list_topics(
            topic, validation.timeout_milliseconds(timeout)
        )

    async def cluster_id(self, timeout: float = -1) -> str | None:
        return await self._open_core().offset_queries.cluster_id(
            validation.timeout_milliseconds(timeout)
        )

    async def memberid(self) -> str | None:
        return self._open_core().member_id()

    async def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        return self._open_core().group_metadata()

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """Uses these credentials for connections opened from now on."""
        self._open_core().cluster.set_sasl_credentials(username, password)

    def metrics(self) -> Metrics:
        """Returns metrics by the names of the Java consumer: "group:name:{tags}"."""
        return self._open_core().metrics()

    # Closing

    async def close(self) -> None:
        """Commits offsets if auto commit is enabled, leaves the group and disconnects.

        A second call does nothing.
        """
        if self._is_closed:
            return
        try:
            await self._run_with_callbacks(self._core.close())
        finally:
            self._is_closed = True
            self.has_events = True  # the next call finds the consumer closed
            self.current_fetch = None
            self._buffer.notify()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _open_core(self) -> ConsumerCore:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        return self._core

    async def _run_with_callbacks(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Awaits a coroutine that may need callbacks; the first error of a callback is raised."""
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(lambda _: self._buffer.notify())
        raised: Exception | None = None
        while not task.done():
            try:
                await self._run_events()
            except Exception as error:
                raised = raised or error
            if not task.done():
                await self._buffer.wait_for_event()
        if raised is not None and task.exception() is None:
            raise raised
        return task.result()


async def _await_result(result: Any) -> None:
    if isawaitable(result):
        await result


def _deadline_s(timeout: float) -> float | None:
    timeout_s = validation.timeout_seconds(timeout)
    return None if timeout_s is None else time.monotonic() + timeout_s
