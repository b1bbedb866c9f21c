from collections.abc import Sequence

from barnabas.wire.records.batch import Readable
from barnabas.wire.records.record import Record

COMPILED: bool

def walk(
    buffer: Readable,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    earliest: int,
    latest: int,
) -> tuple[int, int, int, int]: ...
def find_faults(
    buffer: Readable,
    start: int,
    end: int,
    count: int,
    base_timestamp: int,
    earliest: int,
    latest: int,
    needs_key: bool,
    limit: int,
) -> list[tuple[int, int | None]]: ...
def decode(
    buffer: Readable,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None,
) -> list[Record]: ...
def encode(
    records: Sequence[Record], base_offset: int | None, base_timestamp: int, reserved: int
) -> bytearray: ...
