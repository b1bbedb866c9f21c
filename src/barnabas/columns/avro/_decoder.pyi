COMPILED: bool
ERROR_MESSAGES: list[str]

class AvroColumnBuffer:
    def __init__(
        self, width: int, has_offsets: bool, is_nullable: bool, fields: list[AvroColumnBuffer]
    ) -> None: ...
    def size(self) -> int: ...
    def buffers(self) -> tuple[bytearray, bytearray, bytearray]: ...

class AvroReader:
    def __init__(self, column: AvroColumnBuffer | None = None) -> None: ...

class AvroNullReader(AvroReader): ...
class AvroBooleanReader(AvroReader): ...
class AvroIntReader(AvroReader): ...

class AvroLongReader(AvroReader):
    def __init__(
        self, column: AvroColumnBuffer, minimum: int, maximum: int, multiplier: int, divisor: int
    ) -> None: ...

class AvroIntToFloatReader(AvroReader): ...

class AvroFloatToDoubleReader(AvroReader):
    def __init__(self, column: AvroColumnBuffer) -> None: ...

class AvroFloatReader(AvroReader): ...

class AvroBytesReader(AvroReader):
    def __init__(self, column: AvroColumnBuffer, is_text: bool) -> None: ...

class AvroFixedReader(AvroReader):
    def __init__(self, column: AvroColumnBuffer, size: int) -> None: ...

class AvroUuidReader(AvroReader):
    def __init__(self, column: AvroColumnBuffer) -> None: ...

class AvroDecimalReader(AvroReader):
    def __init__(
        self, column: AvroColumnBuffer, size: int, limit_high: int, limit_low: int
    ) -> None: ...

class AvroEnumReader(AvroReader):
    def __init__(self, column: AvroColumnBuffer, symbols: list[bytes | None]) -> None: ...

class AvroUnionReader(AvroReader):
    def __init__(self, branches: list[AvroReader]) -> None: ...

class AvroBranchReader(AvroReader):
    def __init__(
        self, column: AvroColumnBuffer, inner: AvroReader, others: list[AvroColumnBuffer]
    ) -> None: ...

class AvroRecordReader(AvroReader):
    def __init__(
        self, column: AvroColumnBuffer | None, readers: list[AvroReader], names: list[str]
    ) -> None: ...

class AvroArrayReader(AvroReader):
    def __init__(
        self,
        column: AvroColumnBuffer | None,
        items: AvroColumnBuffer | None,
        readers: list[AvroReader],
        item_bytes: int,
    ) -> None: ...

class AvroDefaultReader(AvroReader):
    def __init__(self, inner: AvroReader, encoded: bytes) -> None: ...

class AvroVarintSkipper(AvroReader): ...
class AvroBytesSkipper(AvroReader): ...

class AvroFixedSkipper(AvroReader):
    def __init__(self, size: int) -> None: ...

class AvroRecursiveReader(AvroReader):
    def set_inner(self, inner: AvroReader) -> None: ...

class AvroMismatchReader(AvroReader): ...

class AvroProgram:
    def __init__(
        self,
        root: AvroReader,
        column: AvroColumnBuffer,
        columns: list[AvroColumnBuffer],
        nested: list[AvroColumnBuffer],
    ) -> None: ...
    def run(
        self,
        offsets: memoryview,
        validity: memoryview,
        content: memoryview,
        first: int,
        count: int,
        header_bytes: int,
    ) -> list[tuple[int, int, list[str]]]: ...
