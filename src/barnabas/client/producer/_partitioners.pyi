from collections.abc import Callable

COMPILED: bool

BY_NAME: dict[str, tuple[Callable[[bytes], int] | None, bool, bool]]

def murmur2(key: bytes) -> int: ...
def fnv1a(key: bytes) -> int: ...
def hash_partitions(
    offsets: memoryview,
    validity: memoryview,
    content: memoryview,
    first: int,
    count: int,
    hash_key: Callable[[bytes], int] | None,
    partitions: int,
    null_partition: int,
    result: memoryview,
) -> None: ...
