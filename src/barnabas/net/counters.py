"""Counters of the connections to one node: for metrics, and to select the least loaded node."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ConnectionCounters:
    """Totals since the start; `connections`, `in_flight` and `throttle_ms` are current values."""

    requests: int = 0
    responses: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    latency_s: float = 0.0  # of all responses together
    latency_max_s: float = 0.0
    in_flight: int = 0
    timeouts: int = 0
    connections: int = 0
    connects: int = 0
    disconnects: int = 0
    failed_connects: int = 0
    failed_authentications: int = 0
    throttled: int = 0  # responses that a quota delayed
    throttle_ms: int = 0  # the delay of the last of them
    requests_by_api: dict[int, int] = field(default_factory=dict)
