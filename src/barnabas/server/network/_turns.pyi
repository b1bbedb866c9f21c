import asyncio
from collections.abc import Callable
from typing import Protocol

from barnabas.server.network._clock import ServerClock

READABLE: int
WRITABLE: int

class WatchedConnection(Protocol):
    def on_ready(self, events: int) -> None: ...

class ConnectionTurns:
    clock: ServerClock
    loop: asyncio.AbstractEventLoop
    shared: memoryview
    max_frame_bytes: int
    max_requests: int
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: ServerClock,
        shared: memoryview,
        mark_active: Callable[..., None],
    ) -> None: ...
    def watch(self, connection: WatchedConnection, fd: int, before: int, events: int) -> None: ...
    def run(self) -> None: ...
    def close(self) -> None: ...
