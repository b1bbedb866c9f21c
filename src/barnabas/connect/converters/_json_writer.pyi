COMPILED: bool

class JacksonWriter:
    def __init__(self, bits: memoryview, offset: int, null_text: bytes | None) -> None: ...

class JacksonBooleanWriter(JacksonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, values: memoryview, first: int
    ) -> None: ...

class JacksonIntegerWriter(JacksonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, values: memoryview
    ) -> None: ...

class JacksonRealWriter(JacksonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        values: memoryview,
        is_single: bool,
    ) -> None: ...

class JacksonTextWriter(JacksonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        offsets: memoryview,
        content: memoryview,
        mode: int,
    ) -> None: ...

class JacksonDecimalWriter(JacksonWriter):
    def __init__(
        self, bits: memoryview, offset: int, null_text: bytes | None, cells: memoryview, width: int
    ) -> None: ...

class JacksonObjectWriter(JacksonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        names: list[bytes],
        writers: list[JacksonWriter],
        omits_nulls: bool,
    ) -> None: ...

class JacksonArrayWriter(JacksonWriter):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        null_text: bytes | None,
        offsets: memoryview,
        keys: JacksonWriter | None,
        items: JacksonWriter,
        is_object: bool,
    ) -> None: ...

def write_documents(
    root: JacksonWriter,
    prefix: bytes,
    suffix: bytes,
    null_document: bytes | None,
    offsets: memoryview,
    capacity: int,
    errors: list[tuple[int, list[bytes]]],
) -> bytearray: ...
def write_reals(values: memoryview, is_single: bool, offsets: memoryview) -> bytearray: ...
