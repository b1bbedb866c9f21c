"""The buffer between the loop, which fetches, and the user, who polls.

It has two queues: fetches and errors in the order they came, and events (rebalances and
callbacks), which go first. The loop puts; the user takes, in a thread of their own or, with
`barnabas.aio`, on the same loop.
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
from barnabas.wire.records.decompressor import Decompressor


@dataclass(slots=True, frozen=True)
class BufferedError:
    """A message with an error, or with the end of a partition, in the order of the fetches."""

    message: Message
    progress: ConsumerProgress | None = None
    version: int = 0


def error_message(
    error: KafkaError,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> Message:
    """Returns the message of an error. Its value is the text: an empty message would be false."""
    return Message(topic, partition, offset, value=error.str().encode(), error=error)


class FetchBuffer:
    """Fetches, errors and events that wait for the user."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._fetched: deque[CompletedFetch | BufferedError] = deque()
        # Of paused partitions:
        self._paused: dict[ConsumerProgress, list[CompletedFetch | BufferedError]] = {}
        self.paused_bytes = 0
        self._events: deque[Any] = deque()
        self.drained: deque[CompletedFetch] = deque()  # fetches read to their end, for the loop
        self.needs_space = False  # the fetcher waits for space
        self.on_space_freed: Callable[[], None] | None = None
        self.spare_decompressor: Decompressor | None = None  # for the next Arrow batch

    # For the loop

    def put(self, fetched: Iterable[CompletedFetch | BufferedError]) -> None:
        """Adds fetches and errors behind the others."""
        self._fetched.extend(fetched)
        self.notify()

    def put_event(self, event: object) -> None:
        """Adds an event, which goes before all messages."""
        self._events.append(event)
        with suppress(ReferenceError):  # the user has dropped the consumer
            self._poller.has_events = True
        self.notify()

    def take_events(self) -> list[Any]:
        """Returns and removes the events, of a consumer that the user has dropped."""
        events, self._events = self._events, deque()
        return list(events)

    def restore_paused(self, progress: ConsumerProgress) -> None:
        """Puts the fetches of a resumed partition before the others."""
        self._fetched.extendleft(reversed(self._take_paused(progress)))
        self.notify()

    # For the user

    def next_event(self) -> Any:
        """Returns the next event, or None."""
        if self._events:
            return self._events.popleft()
        self._poller.has_events = False
        if self._events:  # one came in between
            self._poller.has_events = True
        return None

    def next_message(self) -> Message | None:
        """Returns the next message, or None; the poller continues with its fetch."""
        poller = self._poller
        while True:
            if poller.current_fetch is not None:
                message = poller.current_fetch.next()
                if message is not None:
                    return message
            error = self.advance()
            if error is not None:
                return error.message
            if poller.current_fetch is None:
                return None

    def advance(self) -> BufferedError | None:
        """Gives the poller the next fetch, if there is one; returns an error that comes first."""
        poller = self._poller
        if poller.current_fetch is not None:
            self._finish_current(poller.current_fetch)
            poller.current_fetch = None
        while self._fetched:
            fetched = self._fetched.popleft()
            progress = fetched.progress
            if progress is None:
                assert isinstance(fetched, BufferedError)
                return fetched
            if fetched.version != progress.version:
                self._release(fetched)
            elif progress.live_version < 0:
                self._set_aside(progress, fetched)
            elif isinstance(fetched, BufferedError):
                return fetched
            else:
                poller.current_fetch = fetched
                return None
        return None

    def take_into(self, messages: list[Message], limit: int) -> bool:
        """Appends the next error, or messages of the next fetch; returns False without either."""
        error = self.advance()
        if error is not None:
            messages.append(error.message)
        elif self._poller.current_fetch is not None:
            messages += self._poller.take(limit - len(messages))
        else:
            return False
        return True

    def put_back(self, error: BufferedError) -> None:
        """Makes an error the first in the buffer again."""
        self._fetched.appendleft(error)

    def _finish_current(self, fetch: CompletedFetch) -> None:
        """Sets the fetch of a paused partition aside, and releases any other."""
        if fetch.version == fetch.progress.version and fetch.progress.live_version < 0:
            self._set_aside(fetch.progress, fetch, is_first=True)
        else:
            self._release(fetch)

    def _release(self, fetched: CompletedFetch | BufferedError) -> None:
        if isinstance(fetched, CompletedFetch):
            self.drained.append(fetched)
            self._notify_space_freed()

    def _set_aside(
        self,
        progress: ConsumerProgress,
        fetched: CompletedFetch | BufferedError,
        *,
        is_first: bool = False,
    ) -> None:
        """Sets a fetch aside while its partition is paused: it takes no space of the others."""
        paused = self._paused.setdefault(progress, [])
        paused.insert(0 if is_first else len(paused), fetched)
        if isinstance(fetched, CompletedFetch):
            self.paused_bytes += fetched.size_bytes
            self._notify_space_freed()

    def _take_paused(self, progress: ConsumerProgress) -> list[CompletedFetch | BufferedError]:
        paused = self._paused.pop(progress, [])
        self.paused_bytes -= sum(
            fetched.size_bytes for fetched in paused if isinstance(fetched, CompletedFetch)
        )
        return paused

    def _notify_space_freed(self) -> None:
        if self.needs_space and self.on_space_freed is not None:
            self.needs_space = False
            self.on_space_freed()

    def discard(self, progress: ConsumerProgress) -> None:
        """Releases the fetches of a paused partition that will not be read."""
        for fetched in self._take_paused(progress):
            self._release(fetched)

    def notify(self) -> None:
        raise NotImplementedError


class SyncFetchBuffer(FetchBuffer):
    """For a user who waits in a thread; a signal, such as that of Ctrl-C, ends the wait."""

    def __init__(self, poller: Poller) -> None:
        super().__init__(poller)
        self._changed = threading.Condition()
        self._is_closed = False

    def wait(self, timeout_s: float | None) -> bool:
        """Waits until the buffer has something or is closed; returns False after the timeout."""
        with self._changed:
            return self._changed.wait_for(self._is_ready, timeout_s)

    def close(self) -> None:
        """Wakes the threads that wait: nothing will come any more."""
        self._is_closed = True
        self.notify()

    def _is_ready(self) -> bool:
        return bool(self._fetched or self._events) or self._is_closed

    def wait_for_event(self, timeout_s: float | None) -> None:
        """Waits until there is an event, `notify` is called, or the timeout has passed."""
        with self._changed:
            if not self._events:
                self._changed.wait(timeout_s)

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


class AioFetchBuffer(FetchBuffer):
    """For a user on the event loop."""

    def __init__(self, poller: Poller) -> None:
        super().__init__(poller)
        self._changed = asyncio.Event()

    async def wait(self, timeout_s: float | None) -> bool:
        """Waits until the buffer has something; returns False after the timeout."""
        if self._fetched or self._events:
            return True
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    async def wait_for_event(self) -> None:
        """Waits until there is an event, or `notify` is called."""
        if not self._events:
            self._changed.clear()
            await self._changed.wait()

    def notify(self) -> None:
        self._changed.set()
