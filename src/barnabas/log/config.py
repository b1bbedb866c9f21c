"""The settings of one log, resolved from its topic and its broker."""

from dataclasses import dataclass, field

_NEVER = 0x7FFFFFFFFFFFFFFF
_DAY_MS = 24 * 60 * 60 * 1000
_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


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
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    delete_retention_ms: int = _DAY_MS
    delete_delay_ms: int = 60_000
    preallocate: bool = False
    producer_expiration_ms: int = _DAY_MS
    verify_transactions: bool = True
    roll_ms: int = field(init=False)
    """The age at which a segment is rolled, early enough for `max_compaction_lag_ms`."""

    max_offset_entries: int = field(init=False)
    max_time_entries: int = field(init=False)
    """The entries with which an index is full; that of timestamps reserves one for its last."""

    def __post_init__(self) -> None:
        lag_ms = self.max_compaction_lag_ms if self.compact else _NEVER
        object.__setattr__(self, "roll_ms", min(self.segment_ms, lag_ms))
        index_bytes = self.segment_index_bytes
        object.__setattr__(self, "max_offset_entries", index_bytes // _OFFSET_ENTRY_BYTES)
        object.__setattr__(self, "max_time_entries", index_bytes // _TIME_ENTRY_BYTES - 1)


DEFAULT_CONFIG = LogConfig()
