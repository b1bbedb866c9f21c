"""The options that reading knows."""

from collections.abc import Mapping

from barnabas.spark.naming import TYPED, Told

STRATEGIES = ("subscribe", "subscribePattern", "assign")
STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
HARMLESS = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "partition.metadata.cache.ttl.ms",
)
"""Of the connector, and without effect: our client asks again by itself, and joins no group."""

KNOWN = frozenset(
    (
        *STRATEGIES,
        *STARTING,
        *ENDING,
        *TYPED,
        *HARMLESS,
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


def told(given: Mapping[str, str]) -> Told:
    """OptionError for one that is not known."""
    return Told(given, KNOWN, purpose="reading")
