from barnabas.server.lanes._fetch_request import PlainFetchRequest
from barnabas.wire._cursor import Sink

class FetchResponseWriter:
    def __init__(self, request: PlainFetchRequest, sink: Sink) -> None: ...
