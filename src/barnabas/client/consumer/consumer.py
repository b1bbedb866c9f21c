"""`barnabas.Consumer`: the consumer for programs without an event loop.

Its core runs on the loop of a thread that all such clients share. Calls run there while the user's
thread waits; messages come to the user's thread through the fetch buffer.
"""

import time
import weakref
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.client._message import Message
from barnabas.client.consumer import validation
from barnabas.client.consumer._poller import SyncPoller
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.fetch_buffer import SyncFetchBuffer
from barnabas.client.consumer.user_events import CallbackEvent, RebalanceEvent, RebalanceType
from barnabas.client.loop_thread import LoopThread
from barnabas.client.metrics import Metrics
from barnabas.client.values import ConsumerGroupMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.client.admin.metadata import ClusterMetadata

T = TypeVar("T")
OnRebalance = Callable[["Consumer", list[TopicPartition]], None]

_EVENT_WAIT_S = 0.1


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
        self._end = weakref.finalize(self, _end, self._thread, self._core)
        self._end.atexit = False  # the thread ends with the process anyway

    # Messages: `poll` is inherited.

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns `num_messages` messages, or those that come within `timeout` seconds.

        -1 waits as long as it takes.
        """
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = _deadline_s(timeout)
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # callbacks may raise: they run in the next call
                self._run_callbacks()
            error = self._buffer.advance()
            if error is not None:
                messages.append(error.message)
            elif self.current_fetch is not None:
                messages += self.take(num_messages - len(messages))
            if len(messages) >= num_messages:
                return messages
            if error is None and self.current_fetch is None and not self._wait(deadline_s):
                return messages

    def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
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
                self._run_callbacks()
            self.poll_count += 1
            builder.take()
            if builder.is_full or not self._wait(deadline_s):
                break
        return builder.build()

    def _poll(self, timeout: float) -> Message | None:
        deadline_s = _deadline_s(timeout)
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
        on_revoke = validation.callback(on_revoke, "on_revoke")
        callbacks = {
            RebalanceType.ASSIGNED: validation.callback(on_assign, "on_assign"),
            RebalanceType.REVOKED: on_revoke,
            RebalanceType.LOST: validation.callback(on_lost, "on_lost") or on_revoke,
        }
        core = self._open_core()
        self._callbacks = callbacks
        self._thread.run(core.subscribe(names))

    def unsubscribe(self) -> None:
        """Leaves the group, or unassigns the assigned partitions."""
        self._run_with_callbacks(self._open_core().unsubscribe())

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions alone, from their offsets or from the committed ones."""
        core = self._open_core()
        self._thread.run(core.assign(validation.distinct_topic_partitions(partitions)))

    def unassign(self) -> None:
        self._thread.run(self._open_core().unassign())

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Reads these partitions besides the assigned ones."""
        core = self._open_core()
        self._call(core.incremental_assign, validation.distinct_topic_partitions(partitions))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        core = self._open_core()
        self._thread.run(core.incremental_unassign(validation.topic_partitions(partitions)))

    def assignment(self) -> list[TopicPartition]:
        return self._call(self._open_core().offset_queries.assignment)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Delivers no messages of these partitions until `resume`; they stay assigned."""
        self._call(self._open_core().pause, validation.topic_partitions(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._call(self._open_core().resume, validation.topic_partitions(partitions))

    # Offsets

    def seek(self, partition: TopicPartition) -> None:
        """Continues to read the assigned partition at its offset."""
        self._call(self._open_core().seek, validation.topic_partition(partition))

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Returns the offsets after the last consumed messages; OFFSET_INVALID without one."""
        return self._call(
            self._open_core().offset_queries.positions, validation.topic_partitions(partitions)
        )

    def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        topic_partitions, timeout_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return self._thread.run(
            self._open_core().offset_queries.committed(topic_partitions, timeout_ms)
        )

    def commit(
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
        commit = core.commit(to_commit, asynchronous=asynchronous)
        return self._thread.run(commit)

    def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Stores offsets for the next commit; needs `enable.auto.offset.store` to be false."""
        core = self._open_core()
        to_store = validation.offsets_to_commit(message, offsets, "store")
        if to_store is None:
            raise ValueError("expected either message or offsets")
        return self._call(core.offset_committer.store, to_store)

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Returns the first offsets at or after timestamps, in ms, given as the offsets."""
        topic_partitions, timeout_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return self._thread.run(
            self._open_core().offset_queries.offsets_for_times(topic_partitions, timeout_ms)
        )

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Returns the log start offset and the high watermark of a partition.

        If `cached`, they are those of the last fetch, and no request is sent.
        """
        core, topic_partition = self._open_core(), validation.topic_partition(partition)
        if cached:
            return self._call(core.offset_queries.cached_watermarks, topic_partition)
        return self._thread.run(
            core.offset_queries.watermarks(
                topic_partition, validation.timeout_milliseconds(timeout)
            )
        )

    def lag(self, partitions: list[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """Returns the lag of partitions (default: all assigned); -1 if it is not known yet."""
        core = self._open_core()
        topic_partitions = None if partitions is None else validation.topic_partitions(partitions)
        return self._call(core.offset_queries.lags, topic_partitions)

    # The cluster and the group

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> "ClusterMetadata":
        return self._thread.run(
            self._open_core().offset_queries.list_topics(
                topic, validation.timeout_milliseconds(timeout)
            )
        )

    def cluster_id(self, timeout: float = -1) -> str | None:
        return self._thread.run(
            self._open_core().offset_queries.cluster_id(validation.timeout_milliseconds(timeout))
        )

    def memberid(self) -> str | None:
        return self._call(self._open_core().member_id)

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        return self._call(self._open_core().group_metadata)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Uses these credentials for connections opened from now on."""
        self._call(self._open_core().cluster.set_sasl_credentials, username, password)

    def metrics(self) -> Metrics:
        """Returns metrics by the names of the Java consumer: "group:name:{tags}"."""
        return self._call(self._open_core().metrics)

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
            self._end.detach()
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

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        """Calls a function of the core on its loop."""

        async def call() -> T:
            return function(*args)

        return self._thread.run(call())

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


def _end(thread: LoopThread, core: ConsumerCore) -> None:
    """Does not wait: the garbage collector may call it in the thread of the loop itself."""
    if not thread.is_in_forked_child:
        closed = thread.submit(core.abandon())
        closed.add_done_callback(lambda _: thread.release())


def _deadline_s(timeout: float) -> float | None:
    timeout_s = validation.timeout_seconds(timeout)
    return None if timeout_s is None else time.monotonic() + timeout_s
