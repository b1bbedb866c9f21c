"""When a log begins a new segment."""

from zlib import crc32

from barnabas.log.config import LogConfig
from barnabas.log.segment import Segment

_MAX_RELATIVE_OFFSET = 0x7FFFFFFF


def must_roll(
    active: Segment,
    config: LogConfig,
    name: str,
    size_bytes: int,
    last_offset: int,
    max_timestamp: int,
    now_ms: int,
) -> bool:
    """Whether bytes up to `last_offset` must not go into the active segment any more."""
    if active.size_bytes > config.segment_bytes - size_bytes:
        return True
    if last_offset - active.base_offset > _MAX_RELATIVE_OFFSET:
        return True
    if active.is_full(config.segment_index_bytes):
        return True
    if not active.size_bytes:
        return False
    roll_ms = config.segment_ms
    if config.segment_jitter_ms:
        roll_ms -= _jitter_ms(active, config, name)
    return active.age_ms(max_timestamp, now_ms) > roll_ms


def _jitter_ms(active: Segment, config: LogConfig, name: str) -> int:
    """How much earlier this segment is rolled, so that not all partitions roll at once."""
    span_ms = min(config.segment_jitter_ms, config.segment_ms)
    return crc32(f"{name}:{active.base_offset}".encode()) % span_ms
