"""Faults that a test injects into a broker: for which requests, and how often.

A fault replaces the handler of a request. An error response has the error code in every error
field of the API, as if the broker had returned it.
"""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self

from barnabas.log import OpenFiles
from barnabas.log.segments.open_files import OpenFile
from barnabas.server.handlers import Handler
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, apis
from barnabas.wire.apis import api as api_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import Readable
from barnabas.wire.schema import Message

When = Callable[[Any], bool]
"""Whether a fault applies to a request message, such as a `ProduceRequest`."""

METADATA_DIRECTORY = "__cluster_metadata-0"


class FaultAction(Protocol):
    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        """Responds to the request instead of the handler, or by calling it."""

    def release(self) -> None:
        """Sends delayed responses now."""


class ErrorAction:
    """Responds with an error without calling the handler."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        raise KafkaError(self._code, "This error was injected by the test.")

    def release(self) -> None:
        """Does nothing: the response was not delayed."""


class DelayAction:
    """Delays the response. The request is handled at once: its buffers do not outlive a wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiters: set[asyncio.Future[None]] = set()

    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        response: Message | None = await handle(request, call)
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.add(waiter)
        timer = loop.call_later(self._seconds, _finish, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
        return response

    def release(self) -> None:
        for waiter in tuple(self._waiters):
            waiter.get_loop().call_soon_threadsafe(_finish, waiter)


class DropAction:
    """Closes the connection, before or after the request is handled."""

    def __init__(self, *, after: bool) -> None:
        self._after = after

    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        if self._after:
            await handle(request, call)
        call.connection.close()
        return None

    def release(self) -> None:
        """Does nothing: there is no response."""


def _finish(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class Faults:
    """The faults of one broker. Of several for one API, the first that is not used up applies.

    APIs and errors have their names of Kafka's protocol: "Produce", "NOT_LEADER_OR_FOLLOWER".
    Without `times` a fault applies until it is lifted: by `clear`, by its own `lift`, or by the
    end of its `with` block.
    """

    def __init__(self) -> None:
        self.request_counts: Counter[str] = Counter()
        """The number of requests by API."""
        self.disk = FaultyDisk()
        self._faults: tuple[Fault, ...] = ()
        self._lock = Lock()

    def fail(
        self, api: str, error: str, *, times: int | None = None, when: When | None = None
    ) -> "Fault":
        """Responds with an error without handling the request."""
        return self._add(api, times, when, ErrorAction(_error(error)))

    def delay(
        self, api: str, seconds: float, *, times: int | None = None, when: When | None = None
    ) -> "Fault":
        """Handles the request, and delays the response by the clock of the broker."""
        return self._add(api, times, when, DelayAction(seconds))

    def drop(
        self, api: str, *, times: int | None = None, after: bool = False, when: When | None = None
    ) -> "Fault":
        """Closes the connection instead of responding, before or `after` handling the request."""
        return self._add(api, times, when, DropAction(after=after))

    def fill_disk(self) -> "FullDisk":
        """Makes writes of records fail, as if the disk were full."""
        return FullDisk(self.disk)

    def clear(self) -> None:
        """Lifts all faults."""
        self.disk.is_full = False
        for fault in self._faults:
            fault.lift()

    def release(self) -> None:
        """Sends delayed responses now."""
        for fault in self._faults:
            fault.release()

    def wrap(self, handlers: Mapping[ApiKey, Handler]) -> Mapping[ApiKey, Handler]:
        """Returns the handlers with these faults in front."""
        return _FaultyHandlers(self, handlers)

    def next_fault(self, key: ApiKey, request: Message) -> "Fault | None":
        """Counts a request, and returns the fault that applies to it."""
        self.request_counts[api_of(key).name] += 1
        return next((fault for fault in self._faults if fault.applies_to(key, request)), None)

    def _add(self, api: str, times: int | None, when: When | None, effect: FaultAction) -> "Fault":
        fault = Fault(_key(api), times, when, effect, self._lift)
        with self._lock:
            self._faults = (*self._faults, fault)
        return fault

    def _lift(self, fault: "Fault") -> None:
        with self._lock:
            self._faults = tuple(_order for _order in self._faults if _order is not fault)


class Fault:
    """One fault; a `with` block lifts it at its end."""

    def __init__(
        self,
        key: ApiKey,
        times: int | None,
        when: When | None,
        effect: FaultAction,
        on_lift: "Callable[[Fault], None]",
    ) -> None:
        self.fired = 0
        """How often it was applied."""
        self._key = key
        self._times = times
        self._when = when
        self._on_lift = on_lift
        self.handle = effect.handle
        self.release = effect.release

    def applies_to(self, key: ApiKey, request: Message) -> bool:
        """Whether it applies to this request; if so, it is counted."""
        if key is not self._key or self.fired == self._times:
            return False
        if self._when is not None and not self._when(request):
            return False
        self.fired += 1
        return True

    def lift(self) -> None:
        """Ends the fault, and sends delayed responses."""
        self._on_lift(self)
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lift()


class _FaultyHandlers(Mapping[ApiKey, Handler]):
    """Handlers with faults in front."""

    def __init__(self, faults: Faults, handlers: Mapping[ApiKey, Handler]) -> None:
        self._faults = faults
        self._handlers = handlers

    def __getitem__(self, key: ApiKey) -> Handler:
        faults, handle = self._faults, self._handlers[key]

        async def handle_or_fail(request: Message, call: RequestContext) -> Message | None:
            fault = faults.next_fault(key, request)
            if fault is not None:
                return await fault.handle(handle, request, call)
            response: Message | None = await handle(request, call)
            return response

        return handle_or_fail

    def __contains__(self, key: object) -> bool:
        return key in self._handlers

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


def _key(name: str) -> ApiKey:
    keys = {api.name: api.key for api in apis()}
    return keys[_require_name(name, keys, "an API")]


def _error(name: str) -> ErrorCode:
    return ErrorCode[_require_name(name, ErrorCode.__members__, "an error of the protocol")]


def _require_name(name: str, names: Mapping[str, object], kind: str) -> str:
    if name in names:
        return name
    matches = get_close_matches(name, names, n=1)
    hint = f"; did you mean {matches[0]}?" if matches else ""
    raise ValueError(f"{name} is not {kind}{hint}")


class FaultyDisk:
    """A disk that a test can fill: writes of records fail, reads work.

    Writes of the metadata log still work, because a controller that cannot write stops.
    """

    def __init__(self) -> None:
        self.is_full = False
        self.failed_writes = 0
        """Writes that failed for lack of space."""

    def files(self) -> OpenFiles:
        return _FaultyFiles(self)


class FullDisk:
    """A full disk, until `heal` or the end of its `with` block."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk
        self._failed_before = disk.failed_writes
        disk.is_full = True

    @property
    def fired(self) -> int:
        """The number of writes that failed."""
        return self._disk.failed_writes - self._failed_before

    def heal(self) -> None:
        self._disk.is_full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class _FaultyFiles(OpenFiles):
    __slots__ = ("_disk",)

    def __init__(self, disk: FaultyDisk) -> None:
        super().__init__()
        self._disk = disk

    def wrap_descriptor(self, path: str, fd: int) -> OpenFile:
        if Path(path).parent.name == METADATA_DIRECTORY:
            return OpenFile(fd)
        return _FaultyFile(fd, self._disk)


class _FaultyFile(OpenFile):
    __slots__ = ("_disk",)

    def __init__(self, fd: int, disk: FaultyDisk) -> None:
        super().__init__(fd)
        self._disk = disk

    def write(self, piece: Readable, position: int) -> int:
        if self._disk.is_full:
            self._disk.failed_writes += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(piece, position)
