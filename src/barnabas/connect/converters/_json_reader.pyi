from typing import Any

COMPILED: bool
KINDS: dict[str, int]
ERRORS: dict[str, int]

class JsonColumn:
    def __init__(
        self,
        kind: int,
        width: int,
        is_nullable: bool,
        type_name: str,
        names: list[bytes],
        fields: list[JsonColumn],
        keys: JsonColumn | None = None,
        items: JsonColumn | None = None,
        is_inferred: bool = False,
        is_integral: bool = False,
        scale: int = 0,
    ) -> None: ...
    def reset(self) -> None: ...
    def parts(
        self, length: int
    ) -> tuple[
        int,
        int,
        bytearray,
        bytearray,
        bytearray,
        list[bytes],
        list[JsonColumn],
        JsonColumn | None,
        JsonColumn | None,
    ]: ...
    def item_count(self) -> int: ...

class JsonReader:
    def __init__(self, root: JsonColumn | None) -> None: ...

def inferred_column() -> JsonColumn: ...
def read_rows(
    reader: JsonReader,
    content: memoryview,
    starts: memoryview,
    ends: memoryview,
    skipped: memoryview,
    is_in_envelope: memoryview,
    first: int,
    stop: int,
    errors: list[tuple[Any, ...]],
) -> int: ...
def split_envelopes(
    content: memoryview,
    starts: memoryview,
    ends: memoryview,
    skipped: memoryview,
    value_starts: memoryview,
    value_ends: memoryview,
    is_in_envelope: memoryview,
    groups: memoryview,
    errors: list[tuple[Any, ...]],
) -> list[bytes]: ...
