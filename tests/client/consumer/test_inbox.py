"""What waits for the user comes in order, unless it is stale, paused, or less urgent."""

import asyncio
import threading

from tests.wire.records.samples import some_records

from barnabas.client._message import Message
from barnabas.client.consumer._cursor import Cursor, Progress
from barnabas.client.consumer._tap import Tap
from barnabas.client.consumer.inbox import AioInbox, Inbox, Notice, PlainInbox
from barnabas.client.errors import KafkaError
from barnabas.wire.records.build import build_batch


def fetched(progress: Progress, base_offset: int = 0, count: int = 3) -> Cursor:
    batch = bytes(build_batch(some_records(count), base_offset=base_offset))
    end = base_offset + count
    return Cursor(progress, batch, base_offset, end, count, [], True, False)


def drawn(inbox: Inbox) -> list[tuple[int | None, int | None]]:
    found = []
    while (message := inbox.next()) is not None:
        found.append((message.partition(), message.offset()))
    return found


def offsets(inbox: Inbox) -> list[int | None]:
    return [offset for _, offset in drawn(inbox)]


def test_messages_come_in_the_order_they_were_fetched() -> None:
    inbox = PlainInbox(Tap())
    first, second = Progress("t", 0), Progress("t", 1)
    inbox.put([fetched(first), fetched(second)])
    inbox.put([fetched(first, 3)])
    assert drawn(inbox) == [
        *[(0, offset) for offset in range(3)],
        *[(1, offset) for offset in range(3)],
        *[(0, offset) for offset in range(3, 6)],
    ]


def test_what_became_stale_is_dropped_and_makes_room() -> None:
    inbox = PlainInbox(Tap())
    progress = Progress("t", 0)
    inbox.put([fetched(progress), fetched(progress, 3)])
    assert inbox.next() is not None
    progress.version = progress.live = 1
    inbox.put([fetched(progress, 10)])
    assert offsets(inbox) == [10, 11, 12]
    assert [cursor.next_offset for cursor in inbox.finished] == [3, 6, 13]


def test_what_is_paused_waits_and_comes_first_afterwards() -> None:
    inbox = PlainInbox(Tap())
    paused, other = Progress("t", 0), Progress("t", 1)
    inbox.put([fetched(paused), fetched(paused, 3), fetched(other)])
    assert inbox.next() is not None
    paused.live = -1
    assert drawn(inbox) == [(1, 0), (1, 1), (1, 2)]
    inbox.put([fetched(other, 3)])
    paused.live = paused.version
    inbox.unpark(paused)
    assert drawn(inbox)[:5] == [(0, offset) for offset in range(1, 6)]


def test_what_was_set_aside_of_a_partition_that_is_gone_makes_room() -> None:
    inbox = PlainInbox(Tap())
    paused = Progress("t", 0)
    inbox.put([fetched(paused)])
    paused.live = -1
    assert inbox.next() is None
    inbox.discard(paused)
    assert len(inbox.finished) == 1


def test_an_error_comes_in_its_place_and_not_after_a_seek() -> None:
    inbox = PlainInbox(Tap())
    progress = Progress("t", 0)
    end = Message("t", 0, 3, error=KafkaError(KafkaError._PARTITION_EOF))
    inbox.put([fetched(progress), Notice(end, progress, progress.version)])
    assert offsets(inbox) == [0, 1, 2, 3]
    inbox.put([Notice(end, progress, progress.version)])
    progress.version = progress.live = 1
    assert inbox.next() is None


def test_events_disturb_the_tap_until_all_are_taken() -> None:
    tap = Tap()
    inbox = PlainInbox(tap)
    inbox.put_event("one")
    inbox.put_event("two")
    assert tap.is_disturbed
    assert (inbox.event(), tap.is_disturbed) == ("one", True)
    assert (inbox.event(), inbox.event()) == ("two", None)
    assert not tap.is_disturbed


def test_the_loop_is_told_of_room_once_it_wants_some() -> None:
    inbox = PlainInbox(Tap())
    told: list[int] = []
    inbox.room_made = lambda: told.append(len(inbox.finished))
    progress = Progress("t", 0)
    inbox.put([fetched(progress)])
    assert len(drawn(inbox)) == 3
    assert told == []
    inbox.wants_room = True
    inbox.put([fetched(progress, 3), fetched(progress, 6)])
    assert len(drawn(inbox)) == 6
    assert told == [2], "and only once"


def test_a_waiting_thread_is_woken() -> None:
    inbox = PlainInbox(Tap())
    assert not inbox.wait(0)
    threading.Timer(0, inbox.put, ([fetched(Progress("t", 0))],)).start()
    assert inbox.wait(10)
    assert inbox.wait(0)


def test_a_waiting_task_is_woken() -> None:
    async def wait() -> tuple[bool, bool]:
        inbox = AioInbox(Tap())
        too_early = await inbox.wait(0)
        asyncio.get_running_loop().call_soon(inbox.put_event, "something")
        return too_early, await inbox.wait(10)

    assert asyncio.run(wait()) == (False, True)
