"""`barnabas.aio.Consumer`: the consumer on the caller's event loop.

    async with Consumer(conf) as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            ...

Callbacks run in `poll` and the other calls that wait, and may be coroutine functions.
"""

import asyncio
import time
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client._message import Message
from barnabas.client.client_finalizer import ClientFinalizer
from barnabas.client.consumer import calls, validation
from barnabas.client.consumer._poller import AioPoller
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.fetch_buffer import AioFetchBuffer
from barnabas.client.consumer.user_events import CallbackEvent, RebalanceEvent, RebalanceType
from barnabas.client.methods import documented
from barnabas.client.metrics import Metrics
from barnabas.client.values import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")
OnRebalance = Callable[["AioConsumer", list[TopicPartition]], Any]


def method(
    call: calls.Call[P, T],
) -> "Callable[Concatenate[AioConsumer, P], Coroutine[Any, Any, T]]":
    """Returns the method that awaits this call of the core."""

    async def bound(self: "AioConsumer", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await call(self._open_core(), *args, **kwargs)

    return documented(bound, call)


class AioConsumer(AioPoller):
    """Reads messages of topics, alone or as a member of a group. Needs a running event loop."""

    def __init__(self, *conf: Any, **more: Any) -> None:
        super().__init__()
        settings = validation.parse_settings(conf, more)
        # The loop has no reference to it, so that an unreferenced consumer is closed.
        reference = weakref.proxy(self)
        self._buffer = AioFetchBuffer(reference)
        self._callbacks: dict[RebalanceType, OnRebalance | None] = {}
        self._is_closed = False
        self._core = ConsumerCore(settings, reference, self._buffer)
        loop = asyncio.get_running_loop()
        self._finalizer = ClientFinalizer(self, partial(_abandon, loop, self._core))

    # Messages: `poll` and the iteration are inherited.

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns `num_messages` messages, or those that come within `timeout` seconds.

        -1 waits as long as it takes.
        """
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = validation.deadline_s(timeout)
        await asyncio.sleep(0)  # other tasks run once per fetch, however fast the user polls
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # callbacks may raise: they run in the next call
                await self._run_callbacks()
            was_taken = self._buffer.take_into(messages, num_messages)
            if len(messages) >= num_messages:
                return messages
            if not was_taken and not await self._wait(deadline_s):
                return messages

    async def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
        """Returns `max_rows` rows, or those that come within `timeout` seconds.

        -1 waits as long as it takes. The columns are topic, partition, offset, timestamp, key,
        value and headers.
        """
        from barnabas.client.consumer.arrow import ArrowBatchBuilder

        builder = ArrowBatchBuilder(max_rows, self._buffer, self)
        deadline_s = validation.deadline_s(timeout)
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
        deadline_s = validation.deadline_s(timeout)
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
        callbacks = validation.rebalance_callbacks(on_assign, on_revoke, on_lost)
        core = self._open_core()
        self._callbacks = callbacks
        await core.subscribe(names)

    async def unsubscribe(self) -> None:
        """Leaves the group, or unassigns the assigned partitions."""
        await self._run_with_callbacks(self._open_core().unsubscribe())

    assign = method(calls.assign)
    unassign = method(calls.unassign)
    incremental_assign = method(calls.incremental_assign)
    incremental_unassign = method(calls.incremental_unassign)
    assignment = method(calls.assignment)
    pause = method(calls.pause)
    resume = method(calls.resume)

    # Offsets

    seek = method(calls.seek)
    position = method(calls.position)
    committed = method(calls.committed)
    commit = method(calls.commit)
    store_offsets = method(calls.store_offsets)
    offsets_for_times = method(calls.offsets_for_times)
    get_watermark_offsets = method(calls.get_watermark_offsets)
    lag = method(calls.lag)

    # The cluster and the group

    list_topics = method(calls.list_topics)
    cluster_id = method(calls.cluster_id)
    memberid = method(calls.memberid)
    consumer_group_metadata = method(calls.consumer_group_metadata)
    set_sasl_credentials = method(calls.set_sasl_credentials)

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
            self._finalizer.detach()
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


def _abandon(loop: asyncio.AbstractEventLoop, core: ConsumerCore) -> None:
    """Closes a dropped consumer while its loop runs. Without the loop it cannot leave its group."""

    def start() -> None:
        loop.create_task(core.abandon()).add_done_callback(on_done)

    def on_done(closed: asyncio.Task[None]) -> None:
        if closed.cancelled():  # the loop ends as well
            core.log_not_closed()

    if not loop.is_running():
        core.log_not_closed()
    elif _is_in_loop(loop):
        start()
    else:
        loop.call_soon_threadsafe(start)


def _is_in_loop(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


async def _await_result(result: Any) -> None:
    if isawaitable(result):
        await result
