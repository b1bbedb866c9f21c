"""The settings of the quorum and of the metadata log."""

from dataclasses import dataclass

_WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass(slots=True, frozen=True)
class QuorumConfig:
    """The `metadata.*` and `controller.quorum.*` settings, with Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = _WEEK_MS
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = _WEEK_MS
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    fetch_max_bytes: int = 1024 * 1024
    fetch_snapshot_max_bytes: int = 1024 * 1024
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    auto_join: bool = False
    listener_name: str = "CONTROLLER"
    """The name of the listener by which this node reaches controllers."""
