COMPILED: bool

class JsonWriter:
    def __init__(self, bits: memoryview, offset: int) -> None: ...

class JsonTextWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        offsets: memoryview,
        content: memoryview,
        is_quoted: bool,
    ) -> None: ...

class JsonObjectWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        names: list[bytes],
        writers: list[JsonWriter],
        required: list[bool],
    ) -> None: ...

class JsonArrayWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        offsets: memoryview,
        keys: JsonWriter | None,
        items: JsonWriter,
    ) -> None: ...

def join_objects(
    offsets: memoryview,
    validity: memoryview,
    content: memoryview,
    first: int,
    count: int,
    header_bytes: int,
) -> bytearray | None: ...
def write_documents(
    root: JsonWriter, header: bytes, offsets: memoryview, capacity: int
) -> bytearray: ...
