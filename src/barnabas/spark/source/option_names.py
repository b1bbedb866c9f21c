"""The names of the options of the source."""

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
"""Options of Spark's connector without effect here: our client retries, and joins no group."""

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


def parse_options(options: Mapping[str, str]) -> ParsedOptions:
    """Raises OptionError for an unknown option."""
    return ParsedOptions(options, OPTION_NAMES, purpose="reading")
