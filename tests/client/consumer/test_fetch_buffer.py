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


def drawn(inbox: FetchBuffer) -> list[tuple[int | None, int | None]]:
    found = []
    while (message := inbox.next_message()) is not None:
        found.append((message.partition(), message.offset()))
    return found


def offsets(inbox: FetchBuffer) -> list[int | None]:
    return [offset for _, offset in drawn(inbox)]


def test_messages_come_in_the_order_they_were_fetched() -> None:
    inbox = SyncFetchBuffer(Poller())
    first, second = ConsumerProgress("t", 0), ConsumerProgress("t", 1)
    inbox.put([fetched(first), fetched(second)])
    inbox.put([fetched(first, 3)])
    assert drawn(inbox) == [
        *[(0, offset) for offset in range(3)],
        *[(1, offset) for offset in range(3)],
        *[(0, offset) for offset in range(3, 6)],
    ]


def test_stale_fetches_are_released() -> None:
    inbox = SyncFetchBuffer(Poller())
    progress = ConsumerProgress("t", 0)
    inbox.put([fetched(progress), fetched(progress, 3)])
    assert inbox.next_message() is not None
    progress.version = progress.live_version = 1
    inbox.put([fetched(progress, 10)])
    assert offsets(inbox) == [10, 11, 12]
    assert [cursor.next_offset for cursor in inbox.drained] == [3, 6, 13]


def test_fetches_of_a_resumed_partition_come_first() -> None:
    inbox = SyncFetchBuffer(Poller())
    paused, other = ConsumerProgress("t", 0), ConsumerProgress("t", 1)
    inbox.put([fetched(paused), fetched(paused, 3), fetched(other)])
    assert inbox.next_message() is not None
    paused.live_version = -1
    assert drawn(inbox) == [(1, 0), (1, 1), (1, 2)]
    inbox.put([fetched(other, 3)])
    paused.live_version = paused.version
    inbox.restore_paused(paused)
    assert drawn(inbox)[:5] == [(0, offset) for offset in range(1, 6)]


def test_discarding_a_paused_partition_frees_its_space() -> None:
    inbox = SyncFetchBuffer(Poller())
    paused = ConsumerProgress("t", 0)
    inbox.put([fetched(paused)])
    paused.live_version = -1
    assert inbox.next_message() is None
    inbox.discard(paused)
    assert len(inbox.drained) == 1


def test_an_error_keeps_its_order_and_is_dropped_by_a_seek() -> None:
    inbox = SyncFetchBuffer(Poller())
    progress = ConsumerProgress("t", 0)
    end = Message("t", 0, 3, error=KafkaError(KafkaError._PARTITION_EOF))
    inbox.put([fetched(progress), BufferedError(end, progress, progress.version)])
    assert offsets(inbox) == [0, 1, 2, 3]
    inbox.put([BufferedError(end, progress, progress.version)])
    progress.version = progress.live_version = 1
    assert inbox.next_message() is None


def test_the_poller_has_events_until_all_are_taken() -> None:
    tap = Poller()
    inbox = SyncFetchBuffer(tap)
    inbox.put_event("one")
    inbox.put_event("two")
    assert tap.has_events
    assert (inbox.next_event(), tap.has_events) == ("one", True)
    assert (inbox.next_event(), inbox.next_event()) == ("two", None)
    assert not tap.has_events


def test_the_fetcher_is_notified_of_space_when_it_needs_some() -> None:
    inbox = SyncFetchBuffer(Poller())
    told: list[int] = []
    inbox.on_space_freed = lambda: told.append(len(inbox.drained))
    progress = ConsumerProgress("t", 0)
    inbox.put([fetched(progress)])
    assert len(drawn(inbox)) == 3
    assert told == []
    inbox.needs_space = True
    inbox.put([fetched(progress, 3), fetched(progress, 6)])
    assert len(drawn(inbox)) == 6
    assert told == [2], "and only once"


def test_a_waiting_thread_is_woken() -> None:
    inbox = SyncFetchBuffer(Poller())
    assert not inbox.wait(0)
    threading.Timer(0, inbox.put, ([fetched(ConsumerProgress("t", 0))],)).start()
    assert inbox.wait(10)
    assert inbox.wait(0)


def test_a_waiting_task_is_woken() -> None:
    async def wait() -> tuple[bool, bool]:
        inbox = AioFetchBuffer(Poller())
        too_early = await inbox.wait(0)
        asyncio.get_running_loop().call_soon(inbox.put_event, "something")
        return too_early, await inbox.wait(10)

    assert asyncio.run(wait()) == (False, True)
