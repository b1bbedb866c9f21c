"""Faults that a test injects into a broker: for which requests, and how often.

A fault replaces the handler of a request. An error response has the error code in every error
field of the API, as if the broker had returned it.
"""

import asyncio
import errno
import logging
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self

from barnabas.config.unknown_names import find_similar
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

log = logging.getLogger(__name__)


class RequestCounts(Counter[str]):
    """The number of requests by API. The name of no API is a ValueError."""

    def __missing__(self, name: str) -> int:
        _key(name)
        return 0


class FaultAction(Protocol):
    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        """Responds to the request instead of the handler, or by calling it."""

    def release(self) -> None:
        """Sends delayed responses now, and delays no others."""


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
    """Delays the response. The request is handled at once: its buffers do not outlive a wait.

    `release` is called by another thread, at any time after the fault was counted: before the
    handler has started, while it runs, or while the response waits.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiters: set[asyncio.Future[None]] = set()
        self._is_released = False

    async def handle(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        # Started before the request is handled: a test that sees the fault may move the clock.
        timer = loop.call_later(self._seconds, _finish, waiter)
        self._waiters.add(waiter)
        if self._is_released:  # read after the waiter was added: `release` does the opposite
            _finish(waiter)
        try:
            response: Message | None = await handle(request, call)
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
        return response

    def release(self) -> None:
        self._is_released = True
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
        self.request_counts = RequestCounts()
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
        if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise ValueError(f"{seconds!r} is not a number of seconds")
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
        """Sends delayed responses now, and delays no others."""
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
        if times is not None and (not isinstance(times, int) or times < 1):
            raise ValueError(f"times={times!r} is not a number of requests")
        if when is not None and not callable(when):
            raise ValueError(f"when={when!r} is not a function of a request")
        fault = Fault(_key(api), times, when, effect, self._lift)
        with self._lock:
            self._faults = (*self._faults, fault)
        return fault

    def _lift(self, fault: "Fault") -> None:
        with self._lock:
            self._faults = tuple(_order for _order in self._faults if _order is not fault)


class Fault:
    """One fault; a `with` block lifts it at its end, and raises ValueError if `when` failed."""

    def __init__(
        self,
        key: ApiKey,
        times: int | None,
        when: When | None,
        effect: FaultAction,
        on_lift: "Callable[[Fault], None]",
    ) -> None:
        self._fired = 0
        self._failure: Exception | None = None
        self._key = key
        self._times = times
        self._when = when
        self._on_lift = on_lift
        self.handle = effect.handle
        self.release = effect.release

    @property
    def fired(self) -> int:
        """How often it was applied. Raises ValueError if `when` has failed."""
        self._require_working_predicate()
        return self._fired

    def applies_to(self, key: ApiKey, request: Message) -> bool:
        """Whether it applies to this request; if so, it is counted."""
        if key is not self._key or self._fired == self._times:
            return False
        if self._when is not None and not self._is_selected(request, self._when):
            return False
        self._fired += 1
        return True

    def _is_selected(self, request: Message, when: When) -> bool:
        """`when` runs on the thread of the broker: its failure is kept for that of the test."""
        try:
            return when(request)
        except Exception as error:
            if self._failure is None:
                self._failure = error
                log.exception("when= failed on a %s", type(request).__name__)
            return False

    def _require_working_predicate(self) -> None:
        if self._failure is not None:
            raise ValueError(f"when= failed: {self._failure!r}") from self._failure

    def lift(self) -> None:
        """Ends the fault, and sends delayed responses."""
        self._on_lift(self)
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        self.lift()
        if error_type is None:
            self._require_working_predicate()


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
    similar = find_similar(name, names)
    hint = f"; did you mean {similar}?" if similar is not None else ""
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
