"""`barnabas.Consumer`: the consumer for those who wait in their own thread.

Its core lives on the loop of a thread that all plain clients share. What users call is handed to
it and waited for; only messages come another way, through the inbox (see `_cursor.py`).
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

_SLICE_S = 0.1


class Consumer(SyncPoller):
    """Reads messages of topics, alone or as a member of a group."""

    def __init__(self, *conf: Any, **more: Any) -> None:
        super().__init__()
        self._settings = validation.parse_settings(conf, more)
        # Nothing on the loop holds it: a consumer that nobody needs any more ends by itself.
        me = weakref.proxy(self)
        self._inbox = SyncFetchBuffer(me)
        self._callbacks: dict[RebalanceType, OnRebalance | None] = {}
        self._is_closed = False
        self._thread = LoopThread.shared()
        try:
            self._core = self._thread.run(_make(self._settings, me, self._inbox))
        except BaseException:
            self._thread.release()
            raise
        self._end = weakref.finalize(self, _end, self._thread, self._core)
        self._end.atexit = False  # its thread ends with the process anyway

    # Messages: `poll` is inherited.

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """So many messages, or those that come within `timeout` seconds (-1: however long)."""
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = _deadline_s(timeout)
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # the callbacks, which may raise, come with the next call
                self._serve()
            notice = self._inbox.advance()
            if notice is not None:
                messages.append(notice.message)
            elif self.current_fetch is not None:
                messages += self.take(num_messages - len(messages))
            if len(messages) >= num_messages:
                return messages
            if notice is None and self.current_fetch is None and not self._wait(deadline_s):
                return messages

    def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
        """So many rows, or those that come within `timeout` seconds (-1: however long).

        The columns are topic, partition, offset, timestamp, key, value and headers.
        """
        from barnabas.client.consumer.arrow import ArrowBatchBuilder

        gathering = ArrowBatchBuilder(max_rows, self._inbox, self)
        deadline_s = _deadline_s(timeout)
        while True:
            if self.has_events or self._is_closed:
                if gathering.rows:
                    break
                self._serve()
            self.poll_count += 1
            gathering.take()
            if gathering.is_full or not self._wait(deadline_s):
                break
        return gathering.batch()

    def _poll(self, timeout: float) -> Message | None:
        deadline_s = _deadline_s(timeout)
        while True:
            self._serve()
            message = self._inbox.next_message()
            if message is not None:
                return message
            if not self._wait(deadline_s):
                return None

    def _wait(self, deadline_s: float | None) -> bool:
        self._thread.check_not_forked()
        self._core.is_waiting = True
        try:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            return self._inbox.wait(left_s)
        finally:
            self._core.is_waiting = False

    # Callbacks

    def _serve(self) -> None:
        """Call the callbacks that wait for this thread."""
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        self._serve_events()

    def _serve_events(self) -> None:
        while (event := self._inbox.next_event()) is not None:
            if isinstance(event, CallbackEvent):
                event.function(*event.arguments)
            else:
                self._ask_about(event)

    def _ask_about(self, rebalance: RebalanceEvent) -> None:
        callback = self._callbacks.get(rebalance.type)
        self._core.begin_rebalance(rebalance)
        try:
            if callback is not None:
                callback(self, [TopicPartition(*each) for each in rebalance.partitions])
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
        """Read these topics as a member of the group; `^...` is a pattern of names.

        The callbacks are called in `poll`, with this consumer and the partitions.
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
        self._run_serving(self._open_core().unsubscribe())

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions and nothing else, each from its offset or the committed one."""
        core = self._open_core()
        self._thread.run(core.assign(validation.distinct_topic_partitions(partitions)))

    def unassign(self) -> None:
        self._thread.run(self._open_core().unassign())

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        core = self._open_core()
        self._call(core.incremental_assign, validation.distinct_topic_partitions(partitions))

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        core = self._open_core()
        self._thread.run(core.incremental_unassign(validation.topic_partitions(partitions)))

    def assignment(self) -> list[TopicPartition]:
        return self._call(self._open_core().queries.assignment)

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._call(self._open_core().pause, validation.topic_partitions(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._call(self._open_core().resume, validation.topic_partitions(partitions))

    # Offsets

    def seek(self, partition: TopicPartition) -> None:
        """Read the partition from its offset on."""
        self._call(self._open_core().seek, validation.topic_partition(partition))

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offset after the last message that was consumed."""
        return self._call(
            self._open_core().queries.positions, validation.topic_partitions(partitions)
        )

    def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        places, wait_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return self._thread.run(self._open_core().queries.committed(places, wait_ms))

    def commit(
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit the offset after a message, these offsets, or what is stored.

        Asynchronous, it returns at once and on_commit tells the outcome.
        """
        core = self._open_core()
        places = validation.offsets_to_commit(message, offsets, "commit")
        committing = core.commit(places, asynchronous=asynchronous)
        return self._thread.run(committing)

    def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Keep offsets for the next commit; needs enable.auto.offset.store to be false."""
        core = self._open_core()
        places = validation.offsets_to_commit(message, offsets, "store")
        if places is None:
            raise ValueError("expected either message or offsets")
        return self._call(core.offset_committer.store, places)

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """The first offsets at or after the times that stand in place of offsets, in ms."""
        places, wait_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return self._thread.run(self._open_core().queries.offsets_for_times(places, wait_ms))

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset, and the one after the last; cached: as the last fetch told them."""
        core, place = self._open_core(), validation.topic_partition(partition)
        if cached:
            return self._call(core.queries.cached_watermarks, place)
        return self._thread.run(
            core.queries.watermarks(place, validation.timeout_milliseconds(timeout))
        )

    def lag(self, partitions: list[TopicPartition] | None = None) -> dict[TopicPartition, int]:
        """How many offsets are ahead, by partition (default: all); -1 before that is known."""
        core = self._open_core()
        places = None if partitions is None else validation.topic_partitions(partitions)
        return self._call(core.queries.lags, places)

    # The cluster and the group

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> "ClusterMetadata":
        return self._thread.run(
            self._open_core().queries.list_topics(topic, validation.timeout_milliseconds(timeout))
        )

    def cluster_id(self, timeout: float = -1) -> str | None:
        return self._thread.run(
            self._open_core().queries.cluster_id(validation.timeout_milliseconds(timeout))
        )

    def memberid(self) -> str | None:
        return self._call(self._open_core().member_id)

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        return self._call(self._open_core().group_metadata)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """For the connections that are made from now on."""
        self._call(self._open_core().cluster.set_sasl_credentials, username, password)

    def metrics(self) -> Metrics:
        """Figures under the names that Java's consumer has for them: "group:name:{tags}"."""
        return self._call(self._open_core().metrics)

    # The end

    def close(self) -> None:
        """Commit what auto commit has to, leave the group, hang up. A second time does nothing."""
        if self._is_closed or self._thread.is_in_forked_child:
            return
        try:
            self._run_serving(self._core.close())
        finally:
            self._end.detach()
            self._is_closed = True
            self.has_events = True  # whatever is called next finds it closed
            self.current_fetch = None
            self._inbox.close()
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

    # Ways to the core

    def _open_core(self) -> ConsumerCore:
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        return self._core

    def _call(self, function: Callable[..., T], *given: Any) -> T:
        """Call a function of the core on its loop."""

        async def call() -> T:
            return function(*given)

        return self._thread.run(call())

    def _run_serving(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for what may need this thread's callbacks; the first that raises, raises after."""
        future = self._thread.submit(coroutine)
        future.add_done_callback(lambda _: self._inbox.wake())
        raised: Exception | None = None
        while not future.done():
            try:
                self._serve_events()
            except Exception as error:
                raised = raised or error
            if not future.done():
                self._inbox.wait_for_event(_SLICE_S)
        result = future.result()
        if raised is not None:
            raise raised
        return result


async def _make(settings: Any, tap: SyncPoller, inbox: SyncFetchBuffer) -> ConsumerCore:
    return ConsumerCore(settings, tap, inbox)


def _end(thread: LoopThread, core: ConsumerCore) -> None:
    """Does not wait: it may be the loop's own thread that finds that nobody needs the consumer."""
    if not thread.is_in_forked_child:
        ended = thread.submit(core.abandon())
        ended.add_done_callback(lambda _: thread.release())


def _deadline_s(timeout: float) -> float | None:
    wait_s = validation.timeout_seconds(timeout)
    return None if wait_s is None else time.monotonic() + wait_s
