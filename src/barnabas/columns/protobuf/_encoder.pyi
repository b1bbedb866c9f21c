COMPILED: bool

class ProtobufField:
    def __init__(
        self,
        name: str,
        number: int,
        kind: int,
        wire: int,
        *,
        inner_wire: int = -1,
        is_zigzag: bool = False,
        is_repeated: bool = False,
        is_packed: bool = False,
        is_implicit: bool = False,
        is_required: bool = False,
        symbols: dict[bytes, int] | None = None,
        is_closed: bool = False,
        children: list[ProtobufField] | None = None,
    ) -> None: ...
    def bind(
        self,
        first: int,
        validity: memoryview,
        octets: memoryview,
        ints: memoryview,
        longs: memoryview,
        content: memoryview,
    ) -> None: ...
    def bind_lists(self, first: int, validity: memoryview, starts: memoryview) -> None: ...

class ProtobufWriter:
    def __init__(self) -> None: ...
    def write(
        self, root: ProtobufField, count: int, prefix: bytes, offsets: memoryview
    ) -> tuple[bytearray, int]: ...
