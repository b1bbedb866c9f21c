"""What waits for the user comes in order, unless it is stale, paused, or less urgent."""

import asyncio
import threading

from tests.wire.records.samples import some_records

from barnabas.client._message import Message
from barnabas.client.consumer._completed_fetch import CompletedFetch, ConsumerProgress
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import (
    AioFetchBuffer,
    BufferedError,
    FetchBuffer,
    SyncFetchBuffer,
)
from barnabas.client.errors import KafkaError
from barnabas.wire.records.build import build_batch


def fetched(progress: ConsumerProgress, base_offset: int = 0, count: int = 3) -> CompletedFetch:
    batch = bytes(build_batch(some_records(count), base_offset=base_offset))
    end = base_offset + count
    return CompletedFetch(progress, batch, base_offset, end, count, [], True, False)


def drawn(buffer: FetchBuffer) -> list[tuple[int | None, int | None]]:
    found = []
    while (message := buffer.next_message()) is not None:
        found.append((message.partition(), message.offset()))
    return found


def offsets(buffer: FetchBuffer) -> list[int | None]:
    return [offset for _, offset in drawn(buffer)]


def test_messages_come_in_the_order_they_were_fetched() -> None:
    buffer = SyncFetchBuffer(Poller())
    first, second = ConsumerProgress("t", 0), ConsumerProgress("t", 1)
    buffer.put([fetched(first), fetched(second)])
    buffer.put([fetched(first, 3)])
    assert drawn(buffer) == [
        *[(0, offset) for offset in range(3)],
        *[(1, offset) for offset in range(3)],
        *[(0, offset) for offset in range(3, 6)],
    ]


def test_stale_fetches_are_released() -> None:
    buffer = SyncFetchBuffer(Poller())
    progress = ConsumerProgress("t", 0)
    buffer.put([fetched(progress), fetched(progress, 3)])
    assert buffer.next_message() is not None
    progress.version = progress.live_version = 1
    buffer.put([fetched(progress, 10)])
    assert offsets(buffer) == [10, 11, 12]
    assert [fetch.next_offset for fetch in buffer.drained] == [3, 6, 13]


def test_fetches_of_a_resumed_partition_come_first() -> None:
    buffer = SyncFetchBuffer(Poller())
    paused, other = ConsumerProgress("t", 0), ConsumerProgress("t", 1)
    buffer.put([fetched(paused), fetched(paused, 3), fetched(other)])
    assert buffer.next_message() is not None
    paused.live_version = -1
    assert drawn(buffer) == [(1, 0), (1, 1), (1, 2)]
    buffer.put([fetched(other, 3)])
    paused.live_version = paused.version
    buffer.restore_paused(paused)
    assert drawn(buffer)[:5] == [(0, offset) for offset in range(1, 6)]


def test_discarding_a_paused_partition_frees_its_space() -> None:
    buffer = SyncFetchBuffer(Poller())
    paused = ConsumerProgress("t", 0)
    buffer.put([fetched(paused)])
    paused.live_version = -1
    assert buffer.next_message() is None
    buffer.discard(paused)
    assert len(buffer.drained) == 1


def test_an_error_keeps_its_order_and_is_dropped_by_a_seek() -> None:
    buffer = SyncFetchBuffer(Poller())
    progress = ConsumerProgress("t", 0)
    end = Message("t", 0, 3, error=KafkaError(KafkaError._PARTITION_EOF))
    buffer.put([fetched(progress), BufferedError(end, progress, progress.version)])
    assert offsets(buffer) == [0, 1, 2, 3]
    buffer.put([BufferedError(end, progress, progress.version)])
    progress.version = progress.live_version = 1
    assert buffer.next_message() is None


def test_the_poller_has_events_until_all_are_taken() -> None:
    poller = Poller()
    buffer = SyncFetchBuffer(poller)
    buffer.put_event("one")
    buffer.put_event("two")
    assert poller.has_events
    assert (buffer.next_event(), poller.has_events) == ("one", True)
    assert (buffer.next_event(), buffer.next_event()) == ("two", None)
    assert not poller.has_events


def test_the_fetcher_is_notified_of_space_when_it_needs_some() -> None:
    buffer = SyncFetchBuffer(Poller())
    freed: list[int] = []
    buffer.on_space_freed = lambda: freed.append(len(buffer.drained))
    progress = ConsumerProgress("t", 0)
    buffer.put([fetched(progress)])
    assert len(drawn(buffer)) == 3
    assert freed == []
    buffer.needs_space = True
    buffer.put([fetched(progress, 3), fetched(progress, 6)])
    assert len(drawn(buffer)) == 6
    assert freed == [2], "and only once"


def test_a_waiting_thread_is_woken() -> None:
    buffer = SyncFetchBuffer(Poller())
    assert not buffer.wait(0)
    threading.Timer(0, buffer.put, ([fetched(ConsumerProgress("t", 0))],)).start()
    assert buffer.wait(10)
    assert buffer.wait(0)


def test_a_waiting_task_is_woken() -> None:
    async def wait() -> tuple[bool, bool]:
        buffer = AioFetchBuffer(Poller())
        too_early = await buffer.wait(0)
        asyncio.get_running_loop().call_soon(buffer.put_event, "something")
        return too_early, await buffer.wait(10)

    assert asyncio.run(wait()) == (False, True)
