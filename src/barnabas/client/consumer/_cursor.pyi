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
