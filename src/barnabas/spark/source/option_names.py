"""The options that reading knows."""

from collections.abc import Mapping

from barnabas.spark.options_parser import FORMAT_OPTIONS, ParsedOptions

STRATEGIES = ("subscribe", "subscribePattern", "assign")
STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
IGNORED_OPTIONS = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "partition.metadata.cache.ttl.ms",
)
"""Of the connector, and without effect: our client asks again by itself, and joins no group."""

OPTION_NAMES = frozenset(
    (
        *STRATEGIES,
        *STARTING,
        *ENDING,
        *FORMAT_OPTIONS,
        *IGNORED_OPTIONS,
        "startingOffsetsByTimestampStrategy",
        "failOnDataLoss",
        "minPartitions",
        "maxRecordsPerPartition",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "includeHeaders",
        "includeSize",
        "kafkaConsumer.pollTimeoutMs",
        "commitGroupId",
        "longPollMs",
        "mode",
        "columnNameOfCorruptRecord",
    )
)


def parse_options(given: Mapping[str, str]) -> ParsedOptions:
    """OptionError for one that is not known."""
    return ParsedOptions(given, OPTION_NAMES, purpose="reading")
