import mmap

from barnabas.log.segments.page_cache import PositionalRead

def find_batch(
    fd: int,
    position: int,
    end: int,
    offset: int,
    indexed: int | None = None,
    pread: PositionalRead = ...,
) -> int: ...
def find_batch_end(
    fd: int,
    position: int,
    limit: int,
    end: int,
    indexed: int | None = None,
    pread: PositionalRead = ...,
) -> tuple[int, int]: ...
def count_up_to(
    buffer: bytes | bytearray | mmap.mmap,
    count: int,
    entry_bytes: int,
    key_at: int,
    key_bytes: int,
    target: int,
) -> int: ...
