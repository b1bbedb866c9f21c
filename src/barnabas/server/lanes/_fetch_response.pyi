from collections.abc import Sequence

from barnabas.server.lanes._fetch_request import PartitionRead, PlainFetchRequest
from barnabas.wire._cursor import Sink

class FetchResponseWriter:
    def __init__(self, request: PlainFetchRequest, sink: Sink) -> None: ...
    def write(self, reads: Sequence[PartitionRead]) -> None: ...
