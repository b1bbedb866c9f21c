from barnabas.client._message import Message
from barnabas.wire.records.batch import Readable
from barnabas.wire.records.decompressor import Decompressor
from barnabas.wire.records.read import Run

COMPILED: bool

def scan_batches(batches: Readable) -> tuple[int, int, int, int]: ...

class ConsumerProgress:
    topic: str
    partition: int
    version: int
    live_version: int
    position: int
    leader_epoch: int
    def __init__(self, topic: str, partition: int) -> None: ...

class CompletedFetch:
    progress: ConsumerProgress
    version: int
    size_bytes: int
    record_count: int
    next_offset: int
    def __init__(
        self,
        progress: ConsumerProgress,
        batches: Readable,
        fetch_offset: int,
        next_offset: int,
        record_count: int,
        aborted: list[tuple[int, int]],
        read_committed: bool,
        check_crcs: bool,
    ) -> None: ...
    def is_live(self) -> bool: ...
    def next(self) -> Message | None: ...
    def take_run(self, limit: int, decompressor: Decompressor) -> Run | None: ...
