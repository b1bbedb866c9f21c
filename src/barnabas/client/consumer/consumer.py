"""`barnabas.Consumer`: the consumer for programs without an event loop.

Its core runs on the loop of a thread that all such clients share. Calls run there while the user's
thread waits; messages come to the user's thread through the fetch buffer.
"""

import time
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client._message import Message
from barnabas.client.client_finalizer import ClientFinalizer
from barnabas.client.consumer import calls, validation
from barnabas.client.consumer._poller import SyncPoller
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.fetch_buffer import SyncFetchBuffer
from barnabas.client.consumer.user_events import CallbackEvent, RebalanceEvent, RebalanceType
from barnabas.client.loop_thread import LoopThread
from barnabas.client.methods import documented
from barnabas.client.metrics import Metrics
from barnabas.client.values import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")
OnRebalance = Callable[["Consumer", list[TopicPartition]], None]

_EVENT_WAIT_S = 0.1


def blocking(call: calls.Call[P, T]) -> "Callable[Concatenate[Consumer, P], T]":
    """Returns the method that waits for this call of the core, on its loop."""

    def bound(self: "Consumer", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._thread.run(call(self._open_core(), *args, **kwargs))

    return documented(bound, call)


class Consumer(SyncPoller):
    """Reads messages of topics, alone or as a member of a group."""

    def __init__(self, *conf: Any, **more: Any) -> None:
        super().__init__()
        self._settings = validation.parse_settings(conf, more)
        # The loop has no reference to it, so that an unreferenced consumer is closed.
        reference = weakref.proxy(self)
        self._buffer = SyncFetchBuffer(reference)
        self._callbacks: dict[RebalanceType, OnRebalance | None] = {}
        self._is_closed = False
        self._thread = LoopThread.shared()
        try:
            self._core = self._thread.run(_open(self._settings, reference, self._buffer))
        except BaseException:
            self._thread.release()
            raise
        self._finalizer = ClientFinalizer(self, partial(_abandon, self._thread, self._core))

    # Messages: `poll` is inherited.

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns `num_messages` messages, or those that come within `timeout` seconds.

        -1 waits as long as it takes.
        """
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = validation.deadline_s(timeout)
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # callbacks may raise: they run in the next call
                self._run_callbacks()
            was_taken = self._buffer.take_into(messages, num_messages)
            if len(messages) >= num_messages:
                return messages
            if not was_taken and not self._wait(deadline_s):
                return messages

    def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
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
                self._run_callbacks()
            self.poll_count += 1
            builder.take()
            if builder.is_full or not self._wait(deadline_s):
                break
        return builder.build()

    def _poll(self, timeout: float) -> Message | None:
        deadline_s = validation.deadline_s(timeout)
        while True:
            self._run_callbacks()
            message = self._buffer.next_message()
            if message is not None:
                return message
            if not self._wait(deadline_s):
                return None

    def _wait(self, deadline_s: float | None) -> bool:
        self._thread.check_not_forked()
        self._core.is_user_waiting = True
        try:
            remaining_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            return self._buffer.wait(remaining_s)
        finally:
            self._core.is_user_waiting = False

    # Callbacks

    def _run_callbacks(self) -> None:
        """Runs the callbacks that wait for the user's thread."""
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        self._run_events()

    def _run_events(self) -> None:
        while (event := self._buffer.next_event()) is not None:
            if isinstance(event, CallbackEvent):
                event.function(*event.arguments)
            else:
                self._run_rebalance(event)

    def _run_rebalance(self, rebalance: RebalanceEvent) -> None:
        callback = self._callbacks.get(rebalance.type)
        self._core.begin_rebalance(rebalance)
        try:
            if callback is not None:
                callback(self, [TopicPartition(*partition) for partition in rebalance.partitions])
        finally:
            self._thread.run(self._core.end_rebalance(rebalance))

    # Subscription and assignment

    def subscribe(
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
        self._thread.run(core.subscribe(names))

    def unsubscribe(self) -> None:
        """Leaves the group, or unassigns the assigned partitions."""
        self._run_with_callbacks(self._open_core().unsubscribe())

    assign = blocking(calls.assign)
    unassign = blocking(calls.unassign)
    incremental_assign = blocking(calls.incremental_assign)
    incremental_unassign = blocking(calls.incremental_unassign)
    assignment = blocking(calls.assignment)
    pause = blocking(calls.pause)
    resume = blocking(calls.resume)

    # Offsets

    seek = blocking(calls.seek)
    position = blocking(calls.position)
    committed = blocking(calls.committed)
    commit = blocking(calls.commit)
    store_offsets = blocking(calls.store_offsets)
    offsets_for_times = blocking(calls.offsets_for_times)
    get_watermark_offsets = blocking(calls.get_watermark_offsets)
    lag = blocking(calls.lag)

    # The cluster and the group

    list_topics = blocking(calls.list_topics)
    cluster_id = blocking(calls.cluster_id)
    memberid = blocking(calls.memberid)
    consumer_group_metadata = blocking(calls.consumer_group_metadata)
    set_sasl_credentials = blocking(calls.set_sasl_credentials)

    def metrics(self) -> Metrics:
        """Returns metrics by the names of the Java consumer: "group:name:{tags}"."""
        return self._thread.run(_metrics(self._open_core()))

    # Closing

    def close(self) -> None:
        """Commits offsets if auto commit is enabled, leaves the group and disconnects.

        A second call does nothing.
        """
        if self._is_closed or self._thread.is_in_forked_child:
            return
        try:
            self._run_with_callbacks(self._core.close())
        finally:
            self._finalizer.detach()
            self._is_closed = True
            self.has_events = True  # the next call finds the consumer closed
            self.current_fetch = None
            self._buffer.close()
            self._thread.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Calls of the core

    def _open_core(self) -> ConsumerCore:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        return self._core

    def _run_with_callbacks(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Waits for a coroutine that may need callbacks; the first error of one is raised."""
        future = self._thread.submit(coroutine)
        future.add_done_callback(lambda _: self._buffer.notify())
        raised: Exception | None = None
        while not future.done():
            try:
                self._run_events()
            except Exception as error:
                raised = raised or error
            if not future.done():
                self._buffer.wait_for_event(_EVENT_WAIT_S)
        result = future.result()
        if raised is not None:
            raise raised
        return result


async def _open(settings: Any, poller: SyncPoller, buffer: SyncFetchBuffer) -> ConsumerCore:
    return ConsumerCore(settings, poller, buffer)


async def _metrics(core: ConsumerCore) -> Metrics:
    return core.metrics()


def _abandon(thread: LoopThread, core: ConsumerCore) -> "Future[None]":
    """Does not wait: the garbage collector may call it in the thread of the loop itself."""
    return thread.close_client(core.abandon())
