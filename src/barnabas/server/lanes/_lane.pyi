from typing import Any

from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire._cursor import Cursor, Sink

DECLINED: int
RESPONDED: int
NO_RESPONSE: int
DELAYED: int
NO_THROTTLE_TIME: int

class LaneRequest:
    cursor: Cursor
    sink: Sink
    connection: Any
    client_id: str | None
    quotas: RequestQuotas
    key: int
    version: int
    correlation_id: int
    has_flexible_response_header: bool
    received_ms: int
    received_ns: int
    began_ns: int
    size_bytes: int
    throttle_at: int
    is_exempt: bool
    def context(self, node: Any) -> RequestContext: ...

class Lane:
    metrics: RequestMetrics
    def __init__(self, metrics: RequestMetrics) -> None: ...
    def serve(self, request: LaneRequest) -> int: ...
