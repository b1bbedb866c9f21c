from collections import defaultdict

BUCKETS: int

class Histogram:
    total: int
    @property
    def buckets(self) -> list[int]: ...
    @property
    def count(self) -> int: ...
    def observe(self, value: int, times: int = 1) -> None: ...

class RequestMetrics:
    requests: dict[int, int]
    errors: defaultdict[int, int]
    request_bytes: Histogram
    queue_ns: Histogram
    local_ns: Histogram
    remote_ns: Histogram
    response_queue_ns: Histogram
    response_send_ns: Histogram
    total_ns: Histogram
    def count(self, version: int, size_bytes: int, queue_ns: int) -> None: ...
