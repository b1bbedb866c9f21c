"""The settings of a topic, resolved once per change into the form that partitions and logs use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from barnabas.log import LogConfig
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.validate import ProduceRules

TOPIC = 2
BROKER = 4
"""Types of config resources, as the protocol numbers them."""

NO_FLUSH_BY_COUNT = 0x7FFFFFFFFFFFFFFF

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class ConfigProvider(Protocol):
    """Resolves settings: a topic's own, else the broker's, else the defaults."""

    def topic(self, topic: str) -> Mapping[str, Any]: ...

    def broker(self, name: str) -> Any: ...


@dataclass(slots=True, frozen=True)
class TopicConfig:
    """The settings of every partition of one topic."""

    produce: ProduceRules
    log: LogConfig
    min_insync_replicas: int
    flushes_by_count: bool = field(init=False)
    """Whether `flush.messages` makes some appends wait for the disk."""

    def __post_init__(self) -> None:
        flushes_by_count = self.log.flush_messages < NO_FLUSH_BY_COUNT
        object.__setattr__(self, "flushes_by_count", flushes_by_count)

    @property
    def only_compacted(self) -> bool:
        """Whether cleanup.policy is `compact` alone, so that records are not deleted by offset."""
        return self.log.compact and not self.log.delete


def resolve_topic_config(topic: str, settings: ConfigProvider) -> TopicConfig:
    config = settings.topic(topic)
    return TopicConfig(
        produce=_produce_rules(config),
        log=_log_config(config, settings),
        min_insync_replicas=config["min.insync.replicas"],
    )


def _produce_rules(config: Mapping[str, Any]) -> ProduceRules:
    codec = _CODECS.get(config["compression.type"])
    return ProduceRules(
        max_message_bytes=config["max.message.bytes"],
        compacted="compact" in config["cleanup.policy"],
        append_time=config["message.timestamp.type"] == "LogAppendTime",
        before_max_ms=config["message.timestamp.before.max.ms"],
        after_max_ms=config["message.timestamp.after.max.ms"],
        codec=codec,
        level=_level(codec, config),
    )


def _level(codec: Codec | None, config: Mapping[str, Any]) -> int | None:
    match codec:
        case Codec.GZIP | Codec.LZ4 | Codec.ZSTD:
            level: int = config[f"compression.{codec.name.lower()}.level"]
            return level
        case _:
            return None


def _log_config(config: Mapping[str, Any], settings: ConfigProvider) -> LogConfig:
    policy = config["cleanup.policy"]
    return LogConfig(
        segment_bytes=config["internal.segment.bytes"] or config["segment.bytes"],
        segment_ms=config["segment.ms"],
        segment_jitter_ms=config["segment.jitter.ms"],
        segment_index_bytes=config["segment.index.bytes"],
        index_interval_bytes=config["index.interval.bytes"],
        flush_messages=config["flush.messages"],
        flush_ms=config["flush.ms"],
        retention_ms=config["retention.ms"],
        retention_bytes=config["retention.bytes"],
        delete="delete" in policy,
        compact="compact" in policy,
        min_cleanable_dirty_ratio=config["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=config["min.compaction.lag.ms"],
        max_compaction_lag_ms=config["max.compaction.lag.ms"],
        delete_retention_ms=config["delete.retention.ms"],
        delete_delay_ms=config["file.delete.delay.ms"],
        preallocate=config["preallocate"],
        producer_expiration_ms=settings.broker("producer.id.expiration.ms"),
        verify_transactions=settings.broker("transaction.partition.verification.enable"),
    )
