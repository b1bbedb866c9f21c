"""A topic's settings turned into what its partitions and logs work by, once per change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.log import LogConfig
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.validate import ProduceRules

TOPIC = 2
BROKER = 4
"""Types of config resources, as the protocol numbers them."""

NEVER_FLUSHED_BY_COUNT = 0x7FFFFFFFFFFFFFFF

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Settings(Protocol):
    """Where settings come from: a topic's own over the broker's over the defaults."""

    def topic(self, topic: str) -> Mapping[str, Any]: ...

    def broker(self, name: str) -> Any: ...


@dataclass(slots=True, frozen=True)
class TopicRules:
    """What holds for every partition of one topic."""

    produce: ProduceRules
    log: LogConfig
    min_insync_replicas: int

    @property
    def only_compacted(self) -> bool:
        """Nothing may be deleted but what a newer record of the same key replaces."""
        return self.log.compact and not self.log.delete

    @property
    def flushes_by_count(self) -> bool:
        """Some appends are acknowledged only when they are on disk."""
        return self.log.flush_messages < NEVER_FLUSHED_BY_COUNT


def rules_of(topic: str, settings: Settings) -> TopicRules:
    config = settings.topic(topic)
    return TopicRules(
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


def _log_config(config: Mapping[str, Any], settings: Settings) -> LogConfig:
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
        delete_delay_ms=config["file.delete.delay.ms"],
        preallocate=config["preallocate"],
        producer_expiration_ms=settings.broker("producer.id.expiration.ms"),
        verify_transactions=settings.broker("transaction.partition.verification.enable"),
    )
