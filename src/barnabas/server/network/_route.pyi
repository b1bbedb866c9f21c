from collections.abc import Callable
from typing import Any

from barnabas.server.handlers import Handler
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics._request_metrics import RequestMetrics
from barnabas.wire._cursor import Sink
from barnabas.wire.apis import ApiKey
from barnabas.wire.error_response import ErrorCounter
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer, Message

Reader = Callable[[Buffer, int], tuple[Any, int]]

class Route:
    key: int
    name: str
    version: int
    handle: Handler
    lane: Lane | None
    metrics: RequestMetrics
    has_flexible_header: bool
    has_flexible_response_header: bool
    has_throttle_time: bool
    count_errors: ErrorCounter
    def __init__(
        self,
        key: ApiKey,
        version: int,
        handle: Handler,
        metrics: RequestMetrics,
        lane: Lane | None = None,
    ) -> None: ...
    read: Reader
    def set_reader(self, read: Reader) -> None: ...
    def encode(self, response: Message, correlation_id: int, out: Outgoing) -> None: ...

def append_response(
    sink: Sink, correlation_id: int, has_flexible_response_header: bool, out: Outgoing
) -> None: ...
