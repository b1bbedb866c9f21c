from collections.abc import Sequence

from barnabas.wire.records.record import Record

def encode(
    records: Sequence[Record], base_offset: int | None, base_timestamp: int, reserved: int
) -> bytearray: ...

class Rows:
    def __init__(
        self,
        count: int,
        timestamps: memoryview,
        timestamp: int,
        keys: SourceCells,
        values: SourceCells,
        header_offsets: memoryview,
        header_keys: SourceCells,
        header_values: SourceCells,
    ) -> None: ...
    def fit(self, first: int, max_bytes: int) -> tuple[int, int, int, int]: ...
    def encode(self, first: int, count: int, size: int, reserved: int) -> bytearray: ...

class SourceCells:
    def __init__(
        self,
        offsets: memoryview,
        validity: memoryview,
        content: memoryview,
        first: int,
        count: int,
    ) -> None: ...
