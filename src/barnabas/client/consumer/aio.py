"""`barnabas.aio.Consumer`: the same consumer on the caller's own loop.

    async with Consumer(conf) as consumer:
        await consumer.subscribe(["orders"])
        async for message in consumer:
            ...

Callbacks are called inside poll and its like, and may be coroutine functions.
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
    """Reads messages of topics, alone or as a member of a group. Made on a running loop."""

    def __init__(self, *conf: Any, **more: Any) -> None:
        super().__init__()
        self._inbox = AioFetchBuffer(self)
        self._callbacks: dict[RebalanceType, OnRebalance | None] = {}
        self._is_closed = False
        self._core = ConsumerCore(validation.parse_settings(conf, more), self, self._inbox)

    # Messages: `poll` and the iteration are inherited.

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """So many messages, or those that come within `timeout` seconds (-1: however long)."""
        validation.message_count(num_messages)
        messages = self.take(num_messages)
        if messages and len(messages) == num_messages:
            return messages
        deadline_s = _deadline_s(timeout)
        await asyncio.sleep(0)  # the loop has its turn with every fetch, however fast the user is
        while True:
            if self.has_events or self._is_closed:
                if messages:
                    return messages  # the callbacks, which may raise, come with the next call
                await self._serve()
            notice = self._inbox.advance()
            if notice is not None:
                messages.append(notice.message)
            elif self.current_fetch is not None:
                messages += self.take(num_messages - len(messages))
            if len(messages) >= num_messages:
                return messages
            if notice is None and self.current_fetch is None and not await self._wait(deadline_s):
                return messages

    async def consume_arrow(self, max_rows: int = 100_000, timeout: float = -1) -> "pa.RecordBatch":
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
                await self._serve()
            self.poll_count += 1
            gathering.take()
            if gathering.is_full or not await self._wait(deadline_s):
                break
        return gathering.batch()

    async def _poll(self, timeout: float) -> Message | None:
        deadline_s = _deadline_s(timeout)
        await asyncio.sleep(0)  # the loop has its turn with every fetch, however fast the user is
        while True:
            await self._serve()
            message = self._inbox.next_message()
            if message is not None:
                return message
            if not await self._wait(deadline_s):
                return None

    async def _next(self) -> Message:
        await asyncio.sleep(0)
        while not self._is_closed:
            await self._serve_events()
            message = self._inbox.next_message()
            if message is not None:
                return message
            await self._wait(None)
        raise StopAsyncIteration

    async def _wait(self, deadline_s: float | None) -> bool:
        self._core.is_waiting = True
        try:
            left_s = None if deadline_s is None else max(0.0, deadline_s - time.monotonic())
            return await self._inbox.wait(left_s)
        finally:
            self._core.is_waiting = False

    # Callbacks

    async def _serve(self) -> None:
        """Call the callbacks that wait for the user to poll."""
        if self._is_closed:
            raise RuntimeError("Consumer closed")
        await self._serve_events()

    async def _serve_events(self) -> None:
        while (event := self._inbox.next_event()) is not None:
            if isinstance(event, CallbackEvent):
                await _awaited(event.function(*event.arguments))
            else:
                await self._ask_about(event)

    async def _ask_about(self, rebalance: RebalanceEvent) -> None:
        callback = self._callbacks.get(rebalance.type)
        self._core.begin_rebalance(rebalance)
        try:
            if callback is not None:
                places = [TopicPartition(*each) for each in rebalance.partitions]
                await _awaited(callback(self, places))
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
        """Read these topics as a member of the group; `^...` is a pattern of names."""
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
        await self._run_serving(self._open_core().unsubscribe())

    async def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions and nothing else, each from its offset or the committed one."""
        await self._open_core().assign(validation.distinct_topic_partitions(partitions))

    async def unassign(self) -> None:
        await self._open_core().unassign()

    async def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self._open_core().incremental_assign(validation.distinct_topic_partitions(partitions))

    async def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        await self._open_core().incremental_unassign(validation.topic_partitions(partitions))

    async def assignment(self) -> list[TopicPartition]:
        return self._open_core().queries.assignment()

    async def pause(self, partitions: list[TopicPartition]) -> None:
        self._open_core().pause(validation.topic_partitions(partitions))

    async def resume(self, partitions: list[TopicPartition]) -> None:
        self._open_core().resume(validation.topic_partitions(partitions))

    # Offsets

    async def seek(self, partition: TopicPartition) -> None:
        """Read the partition from its offset on."""
        self._open_core().seek(validation.topic_partition(partition))

    async def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The offset after the last message that was consumed."""
        return self._open_core().queries.positions(validation.topic_partitions(partitions))

    async def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        places, wait_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return await self._open_core().queries.committed(places, wait_ms)

    async def commit(
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
        return await core.commit(places, asynchronous=asynchronous)

    async def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> list[TopicPartition]:
        """Keep offsets for the next commit; needs enable.auto.offset.store to be false."""
        core = self._open_core()
        places = validation.offsets_to_commit(message, offsets, "store")
        if places is None:
            raise ValueError("expected either message or offsets")
        return core.offset_committer.store(places)

    async def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """The first offsets at or after the times that stand in place of offsets, in ms."""
        places, wait_ms = (
            validation.topic_partitions(partitions),
            validation.timeout_milliseconds(timeout),
        )
        return await self._open_core().queries.offsets_for_times(places, wait_ms)

    async def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """The first offset, and the one after the last; cached: as the last fetch told them."""
        core, place = self._open_core(), validation.topic_partition(partition)
        if cached:
            return core.queries.cached_watermarks(place)
        return await core.queries.watermarks(place, validation.timeout_milliseconds(timeout))

    async def lag(
        self, partitions: list[TopicPartition] | None = None
    ) -> dict[TopicPartition, int]:
        """How many offsets are ahead, by partition (default: all); -1 before that is known."""
        core = self._open_core()
        return core.queries.lags(
            None if partitions is None else validation.topic_partitions(partitions)
        )

    # The cluster and the group

    async def list_topics(self, topic: str | None = None, timeout: float = -1) -> "ClusterMetadata":
        return await self._open_core().queries.list_topics(
            topic, validation.timeout_milliseconds(timeout)
        )

    async def cluster_id(self, timeout: float = -1) -> str | None:
        return await self._open_core().queries.cluster_id(validation.timeout_milliseconds(timeout))

    async def memberid(self) -> str | None:
        return self._open_core().member_id()

    async def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        return self._open_core().group_metadata()

    async def set_sasl_credentials(self, username: str, password: str) -> None:
        """For the connections that are made from now on."""
        self._open_core().cluster.set_sasl_credentials(username, password)

    def metrics(self) -> Metrics:
        """Figures under the names that Java's consumer has for them: "group:name:{tags}"."""
        return self._open_core().metrics()

    # The end

    async def close(self) -> None:
        """Commit what auto commit has to, leave the group, hang up. A second time does nothing."""
        if self._is_closed:
            return
        try:
            await self._run_serving(self._core.close())
        finally:
            self._is_closed = True
            self.has_events = True  # whatever is called next finds it closed
            self.current_fetch = None
            self._inbox.wake()

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

    async def _run_serving(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await what may need callbacks meanwhile; the first of them that raises, raises after."""
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(lambda _: self._inbox.wake())
        raised: Exception | None = None
        while not task.done():
            try:
                await self._serve_events()
            except Exception as error:
                raised = raised or error
            if not task.done():
                await self._inbox.wait_for_event()
        if raised is not None and task.exception() is None:
            raise raised
        return task.result()


async def _awaited(result: Any) -> None:
    if isawaitable(result):
        await result


def _deadline_s(timeout: float) -> float | None:
    wait_s = validation.timeout_seconds(timeout)
    return None if wait_s is None else time.monotonic() + wait_s
