"""The options of reading: those of Spark's Kafka connector, with its rules, and our own.

Names come in lower case, whatever the user wrote; values are read in any case where they are
words.
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
"""What a task asks for at a time, unless told otherwise."""

_REFUSED = {
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
    """Which topics are read: just one of the three is set."""

    names: tuple[str, ...] = ()
    pattern: str = ""
    partitions: frozenset[SourcePartition] = frozenset()

    @property
    def only(self) -> str | None:
        """The topic, where it is known to be just one."""
        named = {*self.names, *(each.topic for each in self.partitions)}
        return named.pop() if len(named) == 1 else None


@dataclass(slots=True, frozen=True)
class AdmissionLimits:
    """How much a micro-batch takes at most, and what it waits for."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_DELAY_MS


@dataclass(slots=True, frozen=True)
class TaskSizing:
    """How ranges become tasks."""

    min_partitions: int | None = None
    max_records: int | None = None


@dataclass(slots=True, frozen=True)
class SourceOptions:
    """What was asked for, read and checked."""

    topics: TopicSelection
    client: Mapping[str, str]
    starting: Bound
    ending: Bound
    is_late_latest: bool = False  # a time after the last record means the end of the partition
    fail_on_data_loss: bool = True
    limits: AdmissionLimits = field(default_factory=AdmissionLimits)
    sizing: TaskSizing = field(default_factory=TaskSizing)
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    long_poll_ms: int = DEFAULT_LONG_POLL_MS
    commit_group_id: str | None = None

    @property
    def loss(self) -> DataLossPolicy:
        return DataLossPolicy(self.fail_on_data_loss, self.poll_timeout_ms)


def require_readable(given: Mapping[str, str]) -> None:
    """OptionError for what is wrong whether the read ends or not."""
    told = option_names.parse_options(given)
    topics_of(told)
    require_settings(_client(told))


def batch_options(given: Mapping[str, str]) -> SourceOptions:
    """For a read that ends."""
    told = option_names.parse_options(given)
    starting = _bound(told, STARTING, SameOffset(EARLIEST))
    ending = _bound(told, ENDING, SameOffset(LATEST))
    if _has(starting, LATEST):
        raise OptionError("startingOffsets must not be latest, -1, in a batch: nothing would come.")
    if _has(ending, EARLIEST):
        raise OptionError("endingOffsets must not be earliest, -2, in a batch: nothing would come.")
    return _options(told, starting, ending)


def stream_options(given: Mapping[str, str]) -> SourceOptions:
    """For a read that goes on."""
    told = option_names.parse_options(given)
    for name in ENDING:
        if told.text(name) is not None:
            raise OptionError(f"{name} is not for streams, which have no end.")
    return _options(told, _bound(told, STARTING, SameOffset(LATEST)), SameOffset(LATEST))


def _options(told: ParsedOptions, starting: Bound, ending: Bound) -> SourceOptions:
    limits = AdmissionLimits(
        told.positive_integer("maxOffsetsPerTrigger"),
        told.positive_integer("minOffsetsPerTrigger"),
        told.duration_ms("maxTriggerDelay", DEFAULT_DELAY_MS),
    )
    if limits.max_offsets and limits.min_offsets and limits.min_offsets > limits.max_offsets:
        raise OptionError("minOffsetsPerTrigger must not be greater than maxOffsetsPerTrigger.")
    strategy = told.choice("startingOffsetsByTimestampStrategy", ("error", "latest"))
    return SourceOptions(
        topics_of(told),
        _client(told),
        starting,
        ending,
        strategy == "latest",
        told.flag("failOnDataLoss", default=True),
        limits,
        TaskSizing(
            told.positive_integer("minPartitions"), told.positive_integer("maxRecordsPerPartition")
        ),
        told.positive_integer("kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        told.integer("longPollMs", DEFAULT_LONG_POLL_MS),
        told.text("commitGroupId"),
    )


def topics_of(told: ParsedOptions) -> TopicSelection:
    named = [name for name in STRATEGIES if told.text(name) is not None]
    if len(named) != 1:
        said = f"not {' and '.join(named)}" if named else "and none is given"
        raise OptionError(f"Just one of {', '.join(STRATEGIES)} says what to read, {said}.")
    (strategy,) = named
    text = told.text(strategy) or ""
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
        raise OptionError(f"subscribePattern {text!r} is no regular expression: {error}") from None
    if not text:
        raise OptionError("subscribePattern is empty.")
    return text


def _client(told: ParsedOptions) -> dict[str, str]:
    return FETCH_DEFAULTS | told.client_settings(_REFUSED)


def _bound(told: ParsedOptions, names: tuple[str, str, str], default: Bound) -> Bound:
    """The first of the three options that is given counts, as in the connector."""
    timestamp, by_timestamp, offsets = names
    if told.text(timestamp) is not None:
        return Timestamp(told.integer(timestamp, 0))
    text = told.text(by_timestamp)
    if text is not None:
        return PartitionTimestamps(parse_offsets(by_timestamp, text, least=0))
    text = told.text(offsets)
    if text is None:
        return default
    word = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    if word is not None:
        return SameOffset(word)
    if not text.startswith("{"):
        raise OptionError(f"{offsets} must be earliest, latest or JSON, not {text!r}.")
    return PartitionOffsets(parse_offsets(offsets, text, least=EARLIEST))


def _has(bound: Bound, offset: int) -> bool:
    match bound:
        case SameOffset():
            return bound.offset == offset
        case PartitionOffsets():
            return offset in bound.offsets.values()
    return False
