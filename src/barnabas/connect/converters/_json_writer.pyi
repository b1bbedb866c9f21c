COMPILED: bool

class JsonWriter:
    def __init__(self, bits: memoryview, offset: int, null_text: bytes | None) -> None: ...

class JsonBooleanWriter(JsonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, values: memoryview, first: int
    ) -> None: ...

class JsonIntegerWriter(JsonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, values: memoryview
    ) -> None: ...

class JsonRealWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        values: memoryview,
        is_single: bool,
    ) -> None: ...

class JsonTextWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        offsets: memoryview,
        content: memoryview,
        mode: int,
    ) -> None: ...

class JsonDecimalWriter(JsonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, cells: memoryview, width: int
    ) -> None: ...

class JsonObjectWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        names: list[bytes],
        writers: list[JsonWriter],
        omits_nulls: bool,
    ) -> None: ...

class JsonArrayWriter(JsonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        offsets: memoryview,
        keys: JsonWriter | None,
        items: JsonWriter,
        is_object: bool,
    ) -> None: ...

def write_documents(
    root: JsonWriter,
    prefix: bytes,
    suffix: bytes,
    null_document: bytes | None,
    offsets: memoryview,
    capacity: int,
    errors: list[tuple[int, list[bytes]]],
) -> bytearray: ...
def write_reals(values: memoryview, is_single: bool, offsets: memoryview) -> bytearray: ...
