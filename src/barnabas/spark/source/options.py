"""Parses the options of the source: those of Spark's Kafka connector, by its rules, and our own.

Spark passes names in lower case. Values that are words may be in any case.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.spark.options_parser import OptionError, ParsedOptions
from barnabas.spark.source import option_names
from barnabas.spark.source.connection import require_settings
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    PartitionOffsets,
    PartitionTimestamps,
    SameOffset,
    SourcePartition,
    Timestamp,
    parse_offsets,
    parse_partitions,
)
from barnabas.spark.source.option_names import ENDING, STARTING, STRATEGIES

DEFAULT_DELAY_MS = 15 * 60 * 1000
DEFAULT_POLL_TIMEOUT_MS = 120_000
DEFAULT_LONG_POLL_MS = 200

FETCH_DEFAULTS = {
    "max.partition.fetch.bytes": str(8 << 20),
    "fetch.max.bytes": str(16 << 20),
}
"""The defaults of the client settings that limit a fetch."""

_REJECTED_SETTINGS = {
    "auto.offset.reset": "use startingOffsets: Spark keeps track of offsets itself",
    "enable.auto.commit": "use commitGroupId to have progress committed",
    "interceptor.classes": "it is not safe to run them here",
    "key.deserializer": "keys come as binary, or as keyFormat says",
    "value.deserializer": "values come as binary, or as valueFormat says",
    "key.serializer": "nothing is written here",
    "value.serializer": "nothing is written here",
}


@dataclass(slots=True, frozen=True)
class TopicSelection:
    """The topics to read: exactly one of the three fields is set."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: frozenset[SourcePartition] = frozenset()

    @property
    def only(self) -> str | None:
        """The topic, if the options name exactly one."""
        topics = {*self.names, *(partition.topic for partition in self.partitions)}
        return topics.pop() if len(topics) == 1 else None


@dataclass(slots=True, frozen=True)
class AdmissionLimits:
    """The maximum and minimum size of a micro-batch, and how long to wait for the minimum."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_DELAY_MS


@dataclass(slots=True, frozen=True)
class TaskSizing:
    """The user's options for the number and size of tasks."""

    min_partitions: int | None = None
    max_records: int | None = None


@dataclass(slots=True, frozen=True)
class SourceOptions:
    """The parsed and checked options."""

    topics: TopicSelection
    client: Mapping[str, str]
    starting: Bound
    ending: Bound
    is_late_latest: bool = False  # a timestamp after the last record means the end of the partition
    fail_on_data_loss: bool = True
    limits: AdmissionLimits = field(default_factory=AdmissionLimits)
    sizing: TaskSizing = field(default_factory=TaskSizing)
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    long_poll_ms: int = DEFAULT_LONG_POLL_MS
    commit_group_id: str | None = None

    @property
    def data_loss_policy(self) -> DataLossPolicy:
        return DataLossPolicy(self.fail_on_data_loss, self.poll_timeout_ms)


def validate_options(options: Mapping[str, str]) -> None:
    """Raises OptionError for errors that do not depend on batch or stream."""
    parsed = option_names.parse_options(options)
    topic_selection(parsed)
    require_settings(_client(parsed))


def batch_options(options: Mapping[str, str]) -> SourceOptions:
    """Parses the options of a batch."""
    parsed = option_names.parse_options(options)
    starting = _bound(parsed, STARTING, SameOffset(EARLIEST))
    ending = _bound(parsed, ENDING, SameOffset(LATEST))
    if _has(starting, LATEST):
        raise OptionError("startingOffsets must not be latest, -1, in a batch: it would be empty.")
    if _has(ending, EARLIEST):
        raise OptionError("endingOffsets must not be earliest, -2, in a batch: it would be empty.")
    return _options(parsed, starting, ending)


def stream_options(options: Mapping[str, str]) -> SourceOptions:
    """Parses the options of a stream."""
    parsed = option_names.parse_options(options)
    for name in ENDING:
        if parsed.text(name) is not None:
            raise OptionError(f"{name} is not for streams, which have no end.")
    return _options(parsed, _bound(parsed, STARTING, SameOffset(LATEST)), SameOffset(LATEST))


def _options(parsed: ParsedOptions, starting: Bound, ending: Bound) -> SourceOptions:
    limits = AdmissionLimits(
        parsed.positive_integer("maxOffsetsPerTrigger"),
        parsed.positive_integer("minOffsetsPerTrigger"),
        parsed.duration_ms("maxTriggerDelay", DEFAULT_DELAY_MS),
    )
    if limits.max_offsets and limits.min_offsets and limits.min_offsets > limits.max_offsets:
        raise OptionError("minOffsetsPerTrigger must not be greater than maxOffsetsPerTrigger.")
    strategy = parsed.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    return SourceOptions(
        topic_selection(parsed),
        _client(parsed),
        starting,
        ending,
        strategy == "latest",
        parsed.flag("failOnDataLoss", default=True),
        limits,
        TaskSizing(
            parsed.positive_integer("minPartitions"),
            parsed.positive_integer("maxRecordsPerPartition"),
        ),
        parsed.positive_integer("kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        parsed.integer("longPollMs", DEFAULT_LONG_POLL_MS),
        parsed.text("commitGroupId"),
    )


def topic_selection(parsed: ParsedOptions) -> TopicSelection:
    strategies = [name for name in STRATEGIES if parsed.text(name) is not None]
    if len(strategies) != 1:
        actual = f"not {' and '.join(strategies)}" if strategies else "and none is set"
        raise OptionError(f"Exactly one of {', '.join(STRATEGIES)} must be set, {actual}.")
    (strategy,) = strategies
    text = parsed.text(strategy) or ""
    if strategy == "assign":
        return TopicSelection(partitions=parse_partitions(strategy, text))
    if strategy == "subscribePattern":
        return TopicSelection(pattern=_pattern(text))
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise OptionError("subscribe names no topic.")
    return TopicSelection(names=names)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError(
            f"subscribePattern {text!r} is not a regular expression: {error}"
        ) from None
    if not text:
        raise OptionError("subscribePattern is empty.")
    return text


def _client(parsed: ParsedOptions) -> dict[str, str]:
    return FETCH_DEFAULTS | parsed.client_settings(_REJECTED_SETTINGS)


def _bound(parsed: ParsedOptions, names: tuple[str, str, str], default: Bound) -> Bound:
    """Returns the bound of the first of the three options that is set, as Spark's connector."""
    timestamp, by_timestamp, offsets = names
    if parsed.text(timestamp) is not None:
        return Timestamp(parsed.integer(timestamp, 0))
    text = parsed.text(by_timestamp)
    if text is not None:
        return PartitionTimestamps(parse_offsets(by_timestamp, text, minimum=0))
    text = parsed.text(offsets)
    if text is None:
        return default
    symbolic = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if symbolic is not None:
        return SameOffset(symbolic)
    if not text.startswith("{"):
        raise OptionError(f"{offsets} must be earliest, latest or JSON, not {text!r}.")
    return PartitionOffsets(parse_offsets(offsets, text, minimum=EARLIEST))


def _has(bound: Bound, offset: int) -> bool:
    match bound:
        case SameOffset():
            return bound.offset == offset
        case PartitionOffsets():
            return offset in bound.offsets.values()
    return False
