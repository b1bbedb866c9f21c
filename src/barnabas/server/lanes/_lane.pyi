from typing import Any

from barnabas.server.metrics.registry import RequestMetrics
from barnabas.wire._cursor import Cursor, Sink

DECLINED: int
RESPONDED: int
NO_RESPONSE: int
DELAYED: int

class LaneRequest:
    cursor: Cursor
    sink: Sink
    connection: Any
    client_id: str | None
    version: int
    correlation_id: int
    has_flexible_response_header: bool
    received_ms: int
    received_ns: int

class Lane:
    metrics: RequestMetrics
    def __init__(self, metrics: RequestMetrics) -> None: ...
    def serve(self, request: LaneRequest) -> int: ...
