COMPILED: bool
NO_SCHEMA_ID: int

def read_schema_ids(
    offsets: memoryview, content: memoryview, first: int, ids: memoryview
) -> None: ...
