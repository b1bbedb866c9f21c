"""The settings of one log, resolved from its topic and its broker."""

from dataclasses import dataclass

_NEVER = 0x7FFFFFFFFFFFFFFF
_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(slots=True, frozen=True)
class LogConfig:
    """Kafka's topic settings that concern the files, with Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    flush_messages: int = _NEVER
    flush_ms: int = _NEVER
    retention_ms: int = 7 * _DAY_MS  # -1: no limit
    retention_bytes: int = -1  # -1: no limit
    delete: bool = True
    compact: bool = False
    delete_delay_ms: int = 60_000
    preallocate: bool = False
    producer_expiration_ms: int = _DAY_MS
    verify_transactions: bool = True


DEFAULT_CONFIG = LogConfig()
