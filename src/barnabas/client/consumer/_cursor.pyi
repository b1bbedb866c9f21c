from collections.abc import Awaitable
from typing import Any, Self

from barnabas.client._message import Message
from barnabas.wire.records.batch import Readable
from barnabas.wire.records.read import Run

COMPILED: bool

def scan(batches: Readable) -> tuple[int, int, int, int]: ...

class Progress:
    topic: str
    partition: int
    version: int
    live: int
    position: int
    epoch: int
    def __init__(self, topic: str, partition: int) -> None: ...

class Cursor:
    progress: Progress
    version: int
    size_bytes: int
    record_count: int
    next_offset: int
    def __init__(
        self,
        progress: Progress,
        batches: Readable,
        from_offset: int,
        next_offset: int,
        record_count: int,
        aborted: list[tuple[int, int]],
        read_committed: bool,
        check_crcs: bool,
    ) -> None: ...
    def is_live(self) -> bool: ...
    def next(self) -> Message | None: ...
    def take_run(self, limit: int) -> Run | None: ...

class Tap:
    cursor: Cursor | None
    is_disturbed: bool
    polls: int
    def __init__(self) -> None: ...
    def draw(self, limit: int) -> list[Message]: ...

class PlainTap(Tap):
    def poll(self, timeout: float = -1) -> Message | None: ...
    def _poll(self, timeout: float) -> Message | None: ...

class AioTap(Tap):
    def poll(self, timeout: float = -1) -> Awaitable[Message | None]: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Awaitable[Message]: ...
    def _poll(self, timeout: float) -> Awaitable[Message | None]: ...
    def _next(self) -> Awaitable[Message]: ...

class Ready:
    def __init__(self, result: Any) -> None: ...
