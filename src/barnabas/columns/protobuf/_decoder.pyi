from collections.abc import Callable

COMPILED: bool
TRUNCATED: int
BAD_TAG: int
BAD_TEXT: int
BAD_TIMESTAMP: int
TOO_DEEP: int
NOT_CANONICAL: int
OTHER_MESSAGE: int
BAD_VARINT: int

class ProtobufColumnBuffer:
    def __init__(
        self,
        name: str,
        number: int,
        kind: int,
        wire: int,
        *,
        is_zigzag: bool = False,
        inner_wire: int = -1,
        is_repeated: bool = False,
        is_map: bool = False,
        is_nullable: bool = False,
        is_merged: bool = False,
        oneof: int = -1,
        symbols: dict[int, bytes] | None = None,
        is_closed: bool = False,
        default: int = 0,
        children: list[ProtobufColumnBuffer] | None = None,
        oneof_count: int = 0,
    ) -> None: ...
    def clear(self) -> None: ...
    def finish(self) -> tuple[int, bytearray | None, bytearray, bytearray, int, bytearray]: ...

class ProtobufReader:
    def __init__(self, root: ProtobufColumnBuffer) -> None: ...
    def read(
        self,
        offsets: memoryview,
        content: memoryview,
        validity: memoryview,
        first: int,
        count: int,
        header_bytes: int,
        prefixes: tuple[bytes, ...] | None,
        rewrite: Callable[[bytes], bytes | None],
    ) -> list[tuple[int, int, str]]: ...
