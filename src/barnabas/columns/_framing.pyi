COMPILED: bool
NO_HEADER: int

def schema_ids(offsets: memoryview, content: memoryview, first: int, ids: memoryview) -> None: ...
