"""What has gone over the connections to one node: for metrics, and for those who choose."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """Counts from the start; `connections`, `unanswered` and `throttle_ms` are as of now."""

    requests: int = 0
    responses: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    latency_s: float = 0.0  # of all responses together
    latency_max_s: float = 0.0
    unanswered: int = 0
    timeouts: int = 0
    connections: int = 0
    connects: int = 0
    disconnects: int = 0
    failed_connects: int = 0
    failed_authentications: int = 0
    throttled: int = 0  # answers that came late because of a quota
    throttle_ms: int = 0  # by how much the last of them
    requests_by_api: dict[int, int] = field(default_factory=dict)
