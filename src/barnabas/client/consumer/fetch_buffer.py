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
from barnabas.client.consumer._completed_fetch import CompletedFetch, ConsumerProgress
from barnabas.client.consumer._poller import Poller
from barnabas.client.errors import KafkaError


@dataclass(slots=True, frozen=True)
class BufferedError:
    """A message that tells of an error or of an end, and goes with a partition if it has one."""

    message: Message
    progress: ConsumerProgress | None = None
    version: int = 0


def error_message(
    error: KafkaError,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> Message:
    """What poll gives for an error. Its words are the value: an empty message would be false."""
    return Message(topic, partition, offset, value=error.str().encode(), error=error)


class FetchBuffer:
    """What waits for the user."""

    def __init__(self, tap: Poller) -> None:
        self._tap = tap
        self._fetched: deque[CompletedFetch | BufferedError] = deque()
        self._parked: dict[
            ConsumerProgress, list[CompletedFetch | BufferedError]
        ] = {}  # while they are paused
        self.paused_bytes = 0
        self._events: deque[Any] = deque()
        self.drained: deque[CompletedFetch] = deque()  # for the loop to take: there is room again
        self.needs_space = False  # the loop waits for that
        self.on_space_freed: Callable[[], None] | None = None

    # The loop's side

    def put(self, fetched: Iterable[CompletedFetch | BufferedError]) -> None:
        """Messages, behind the others."""
        self._fetched.extend(fetched)
        self.notify()

    def put_event(self, event: object) -> None:
        """Something that goes before all messages."""
        self._events.append(event)
        with suppress(ReferenceError):  # the user has dropped his consumer
            self._tap.has_events = True
        self.notify()

    def take_events(self) -> list[Any]:
        """The events that nobody will come for."""
        events, self._events = self._events, deque()
        return list(events)

    def restore_paused(self, progress: ConsumerProgress) -> None:
        """The partition flows again: what was set aside goes before the rest."""
        self._fetched.extendleft(reversed(self._unparked(progress)))
        self.notify()

    # The user's side

    def next_event(self) -> Any:
        """The next event, or None."""
        if self._events:
            return self._events.popleft()
        self._tap.has_events = False
        if self._events:  # it came in between
            self._tap.has_events = True
        return None

    def next_message(self) -> Message | None:
        """The next message, if there is one; the tap goes on from it."""
        tap = self._tap
        while True:
            if tap.current_fetch is not None:
                message = tap.current_fetch.next()
                if message is not None:
                    return message
            notice = self.advance()
            if notice is not None:
                return notice.message
            if tap.current_fetch is None:
                return None

    def advance(self) -> BufferedError | None:
        """Give the tap the next cursor, or None if there is none, or a notice comes first."""
        tap = self._tap
        if tap.current_fetch is not None:
            self._leave(tap.current_fetch)
            tap.current_fetch = None
        while self._fetched:
            fetched = self._fetched.popleft()
            progress = fetched.progress
            if progress is None:
                assert isinstance(fetched, BufferedError)
                return fetched
            if fetched.version != progress.version:
                self._finish(fetched)
            elif progress.live_version < 0:
                self._park(progress, fetched)
            elif isinstance(fetched, BufferedError):
                return fetched
            else:
                tap.current_fetch = fetched
                return None
        return None

    def put_back(self, notice: BufferedError) -> None:
        """It is the first again."""
        self._fetched.appendleft(notice)

    def _leave(self, cursor: CompletedFetch) -> None:
        """The cursor is read to its end, or is not to be read now, or never."""
        if cursor.version == cursor.progress.version and cursor.progress.live_version < 0:
            self._park(cursor.progress, cursor, is_first=True)
        else:
            self._finish(cursor)

    def _finish(self, fetched: CompletedFetch | BufferedError) -> None:
        if isinstance(fetched, CompletedFetch):
            self.drained.append(fetched)
            self._make_room()

    def _park(
        self,
        progress: ConsumerProgress,
        fetched: CompletedFetch | BufferedError,
        *,
        is_first: bool = False,
    ) -> None:
        """Set it aside, out of the way of the other partitions and of the room they have."""
        parked = self._parked.setdefault(progress, [])
        parked.insert(0 if is_first else len(parked), fetched)
        if isinstance(fetched, CompletedFetch):
            self.paused_bytes += fetched.size_bytes
            self._make_room()

    def _unparked(self, progress: ConsumerProgress) -> list[CompletedFetch | BufferedError]:
        parked = self._parked.pop(progress, [])
        self.paused_bytes -= sum(
            each.size_bytes for each in parked if isinstance(each, CompletedFetch)
        )
        return parked

    def _make_room(self) -> None:
        if self.needs_space and self.on_space_freed is not None:
            self.needs_space = False
            self.on_space_freed()

    def discard(self, progress: ConsumerProgress) -> None:
        """The partition is gone: what was set aside of it will not be read."""
        for fetched in self._unparked(progress):
            self._finish(fetched)

    def notify(self) -> None:
        raise NotImplementedError


class SyncFetchBuffer(FetchBuffer):
    """For a user who waits in his own thread; a signal, as of Ctrl-C, ends the wait."""

    def __init__(self, tap: Poller) -> None:
        super().__init__(tap)
        self._changed = threading.Condition()
        self._is_over = False

    def wait(self, timeout_s: float | None) -> bool:
        """Until something is there or nothing will be any more, or the time is over: then False."""
        with self._changed:
            return self._changed.wait_for(self._is_worth_a_look, timeout_s)

    def close(self) -> None:
        """Nothing will come any more: another thread may wait for it."""
        self._is_over = True
        self.wake()

    def _is_worth_a_look(self) -> bool:
        return bool(self._fetched or self._events) or self._is_over

    def wait_for_event(self, timeout_s: float | None) -> None:
        """Until an event is there, somebody calls `wake`, or the time is over."""
        with self._changed:
            if not self._events:
                self._changed.wait(timeout_s)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class AioFetchBuffer(FetchBuffer):
    """For a user on the loop."""

    def __init__(self, tap: Poller) -> None:
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

    async def wait_for_event(self) -> None:
        """Until an event is there, or somebody calls `wake`."""
        if not self._events:
            self._changed.clear()
            await self._changed.wait()

    def wake(self) -> None:
        self._changed.set()
