COMPILED: bool

class Node:
    def __init__(self, bits: memoryview, offset: int) -> None: ...

class Text(Node):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        offsets: memoryview,
        content: memoryview,
        is_quoted: bool,
    ) -> None: ...

class Fields(Node):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        names: list[bytes],
        nodes: list[Node],
        required: list[bool],
    ) -> None: ...

class Items(Node):
    def __init__(
        self,
        bits: memoryview,
        offset: int,
        offsets: memoryview,
        keys: Node | None,
        items: Node,
    ) -> None: ...

def join_objects(
    offsets: memoryview,
    validity: memoryview,
    content: memoryview,
    first: int,
    count: int,
    header_bytes: int,
) -> bytearray | None: ...
def write(root: Node, header: bytes, offsets: memoryview, capacity: int) -> bytearray: ...
