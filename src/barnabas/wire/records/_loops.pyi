from barnabas.wire.records.batch import Readable
from barnabas.wire.records.record import Record

COMPILED: bool

def walk(
    records: Readable, count: int, base_timestamp: int, earliest: int, latest: int
) -> tuple[int, int, int, int]: ...
def find_faults(
    records: Readable,
    count: int,
    base_timestamp: int,
    earliest: int,
    latest: int,
    needs_key: bool,
    limit: int,
) -> list[tuple[int, int | None]]: ...
def decode(
    records: Readable,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
) -> list[Record]: ...
def gather(
    batches: Readable, position: int, limit: int
) -> tuple[list[tuple[bytes | None, bytes | None]], int, int]: ...

class Walk:
    left: int
    position: int
    end: int
    offset: int
    timestamp: int
    base_offset: int
    base_timestamp: int
    is_stamped: bool
    def __init__(self, records: Readable) -> None: ...
    def begin(
        self,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        base_timestamp: int,
        is_stamped: bool,
        append_time: int,
    ) -> None: ...
    def step(self) -> bool: ...
    def step_back(self) -> None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> list[tuple[str, bytes | None]] | None: ...

def measure(records: Readable, count: int) -> tuple[int, int, int, int, int]: ...

class Columns:
    def __init__(
        self,
        offsets: memoryview,
        timestamps: memoryview,
        keys: DecodedCells,
        values: DecodedCells,
        header_offsets: memoryview,
        header_keys: DecodedCells,
        header_values: DecodedCells,
    ) -> None: ...
    def append(
        self,
        records: Readable,
        count: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
    ) -> None: ...

class DecodedCells:
    def __init__(self, offsets: memoryview, validity: memoryview, content: memoryview) -> None: ...
