from collections.abc import Callable

COMPILED: bool

BY_NAME: dict[str, tuple[Callable[[bytes], int] | None, bool, bool]]

def murmur2(key: bytes) -> int: ...
def fnv1a(key: bytes) -> int: ...
def spread(
    offsets: memoryview,
    validity: memoryview,
    content: memoryview,
    first: int,
    count: int,
    hashed: Callable[[bytes], int] | None,
    partitions: int,
    missing: int,
    partition_of: memoryview,
) -> None: ...
