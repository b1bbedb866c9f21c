"""From the loop to the user: what was fetched, and what he is to be told or asked.

Two queues. Messages wait in the first, in the order they were fetched; what changes the
assignment, and callbacks, in the second, which goes first. The loop puts; the user takes, in his
own thread or, of `barnabas.aio`, on the same loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from barnabas.client._message import Message
from barnabas.client.consumer._cursor import Cursor, Progress
from barnabas.client.consumer._tap import Tap
from barnabas.client.errors import KafkaError


@dataclass(slots=True, frozen=True)
class Notice:
    """A message that tells of an error or of an end, and goes with a partition if it has one."""

    message: Message
    progress: Progress | None = None
    version: int = 0


def message_of(
    error: KafkaError,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> Message:
    """What poll gives for an error. Its words are the value: an empty message would be false."""
    return Message(topic, partition, offset, value=error.str().encode(), error=error)


class Inbox:
    """What waits for the user."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._fetched: deque[Cursor | Notice] = deque()
        self._parked: dict[Progress, list[Cursor | Notice]] = {}  # while they are paused
        self.parked_bytes = 0
        self._events: deque[Any] = deque()
        self.finished: deque[Cursor] = deque()  # for the loop to take: there is room again
        self.wants_room = False  # the loop waits for that
        self.room_made: Callable[[], None] | None = None

    # The loop's side

    def put(self, fetched: Iterable[Cursor | Notice]) -> None:
        """Messages, behind the others."""
        self._fetched.extend(fetched)
        self.wake()

    def put_event(self, event: object) -> None:
        """Something that goes before all messages."""
        self._events.append(event)
        with suppress(ReferenceError):  # the user has dropped his consumer
            self._tap.is_disturbed = True
        self.wake()

    def unserved(self) -> list[Any]:
        """The events that nobody will come for."""
        events, self._events = self._events, deque()
        return list(events)

    def unpark(self, progress: Progress) -> None:
        """The partition flows again: what was set aside goes before the rest."""
        self._fetched.extendleft(reversed(self._unparked(progress)))
        self.wake()

    # The user's side

    def event(self) -> Any:
        """The next event, or None."""
        if self._events:
            return self._events.popleft()
        self._tap.is_disturbed = False
        if self._events:  # it came in between
            self._tap.is_disturbed = True
        return None

    def next(self) -> Message | None:
        """The next message, if there is one; the tap goes on from it."""
        tap = self._tap
        while True:
            if tap.cursor is not None:
                message = tap.cursor.next()
                if message is not None:
                    return message
            notice = self.advance()
            if notice is not None:
                return notice.message
            if tap.cursor is None:
                return None

    def advance(self) -> Notice | None:
        """Give the tap the next cursor, or None if there is none, or a notice comes first."""
        tap = self._tap
        if tap.cursor is not None:
            self._leave(tap.cursor)
            tap.cursor = None
        while self._fetched:
            fetched = self._fetched.popleft()
            progress = fetched.progress
            if progress is None:
                assert isinstance(fetched, Notice)
                return fetched
            if fetched.version != progress.version:
                self._finish(fetched)
            elif progress.live < 0:
                self._park(progress, fetched)
            elif isinstance(fetched, Notice):
                return fetched
            else:
                tap.cursor = fetched
                return None
        return None

    def put_back(self, notice: Notice) -> None:
        """It is the first again."""
        self._fetched.appendleft(notice)

    def _leave(self, cursor: Cursor) -> None:
        """The cursor is read to its end, or is not to be read now, or never."""
        if cursor.version == cursor.progress.version and cursor.progress.live < 0:
            self._park(cursor.progress, cursor, is_first=True)
        else:
            self._finish(cursor)

    def _finish(self, fetched: Cursor | Notice) -> None:
        if isinstance(fetched, Cursor):
            self.finished.append(fetched)
            self._make_room()

    def _park(
        self, progress: Progress, fetched: Cursor | Notice, *, is_first: bool = False
    ) -> None:
        """Set it aside, out of the way of the other partitions and of the room they have."""
        parked = self._parked.setdefault(progress, [])
        parked.insert(0 if is_first else len(parked), fetched)
        if isinstance(fetched, Cursor):
            self.parked_bytes += fetched.size_bytes
            self._make_room()

    def _unparked(self, progress: Progress) -> list[Cursor | Notice]:
        parked = self._parked.pop(progress, [])
        self.parked_bytes -= sum(each.size_bytes for each in parked if isinstance(each, Cursor))
        return parked

    def _make_room(self) -> None:
        if self.wants_room and self.room_made is not None:
            self.wants_room = False
            self.room_made()

    def discard(self, progress: Progress) -> None:
        """The partition is gone: what was set aside of it will not be read."""
        for fetched in self._unparked(progress):
            self._finish(fetched)

    def wake(self) -> None:
        raise NotImplementedError


class PlainInbox(Inbox):
    """For a user who waits in his own thread; a signal, as of Ctrl-C, ends the wait."""

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._changed = threading.Condition()
        self._is_over = False

    def wait(self, timeout_s: float | None) -> bool:
        """Until something is there or nothing will be any more, or the time is over: then False."""
        with self._changed:
            return self._changed.wait_for(self._is_worth_a_look, timeout_s)

    def end(self) -> None:
        """Nothing will come any more: another thread may wait for it."""
        self._is_over = True
        self.wake()

    def _is_worth_a_look(self) -> bool:
        return bool(self._fetched or self._events) or self._is_over

    def wait_event(self, timeout_s: float | None) -> None:
        """Until an event is there, somebody calls `wake`, or the time is over."""
        with self._changed:
            if not self._events:
                self._changed.wait(timeout_s)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class AioInbox(Inbox):
    """For a user on the loop."""

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap)
        self._changed = asyncio.Event()

    async def wait(self, timeout_s: float | None) -> bool:
        """Until something is there, or the time is over: then False."""
        if self._fetched or self._events:
            return True
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def wait_event(self) -> None:
        """Until an event is there, or somebody calls `wake`."""
        if not self._events:
            self._changed.clear()
            await self._changed.wait()

    def wake(self) -> None:
        self._changed.set()
