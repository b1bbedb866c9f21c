"""The options of the source, and the errors for invalid ones."""

import pytest

from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.offsets import (
    EARLIEST,
    LATEST,
    PartitionOffsets,
    PartitionTimestamps,
    SameOffset,
    Timestamp,
)
from barnabas.spark.source.options import (
    SourceOptions,
    TopicSelection,
    batch_options,
    stream_options,
    validate_options,
)


def batch(**more: str) -> SourceOptions:
    return batch_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t"} | more)


def stream(**more: str) -> SourceOptions:
    return stream_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t"} | more)


def test_a_batch_starts_at_earliest_and_a_stream_at_latest() -> None:
    assert (batch().starting, batch().ending) == (SameOffset(EARLIEST), SameOffset(LATEST))
    assert stream().starting == SameOffset(LATEST)


def test_option_names_and_words_are_case_insensitive() -> None:
    read = batch(STARTINGOFFSETS="Earliest", failondataloss="FALSE")
    assert read.starting == SameOffset(EARLIEST)
    assert not read.fail_on_data_loss


def test_offsets_are_given_as_json() -> None:
    given = stream(startingOffsets='{"t":{"0":23,"1":-2,"2":-1}}')
    assert given.starting == PartitionOffsets({("t", 0): 23, ("t", 1): -2, ("t", 2): -1})


def test_one_timestamp_has_priority_over_partition_timestamps_and_offsets() -> None:
    times = {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "startingOffsets": "earliest"}
    assert batch(**times).starting == PartitionTimestamps({("t", 0): 5})
    assert batch(**times, startingTimestamp="7").starting == Timestamp(7)
    assert batch(endingTimestamp="8").ending == Timestamp(8)


def test_topics_are_named_matched_or_assigned() -> None:
    servers = {"kafka.bootstrap.servers": "a:1"}
    assert batch_options(servers | {"subscribe": "a, b,a"}).topics == TopicSelection(
        names=("a", "b")
    )
    assert batch_options(servers | {"subscribePattern": "t.*"}).topics == TopicSelection(
        pattern="t.*"
    )
    assigned = batch_options(servers | {"assign": '{"t":[0,2]}'}).topics
    assert assigned == TopicSelection(partitions=frozenset({("t", 0), ("t", 2)}))


def test_options_with_the_kafka_prefix_are_passed_to_the_client() -> None:
    client = batch(**{"kafka.isolation.level": "read_uncommitted"}).client
    assert client["isolation.level"] == "read_uncommitted"
    assert client["bootstrap.servers"] == "a:1"


def test_durations_have_sparks_syntax() -> None:
    for text, ms in {"500ms": 500, "30s": 30_000, "15m": 900_000, "2h": 7_200_000, "9": 9}.items():
        assert stream(maxTriggerDelay=text).limits.max_delay_ms == ms


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("startingOffset", "latest", "Did you mean 'startingOffsets'"),
        ("bootstrap.servers", "a:1", "Did you mean 'kafka.bootstrap.servers'"),
        ("topic", "t", "'topic' is not an option of reading. Did you mean 'subscribe'"),
        ("subscribePattern", "t.*", "subscribe and subscribePattern"),
        ("startingOffsets", "latest", "must not be latest"),
        ("startingOffsets", '{"t":{"0":-1}}', "must not be latest"),
        ("startingOffsets", '{"t":{"0":-3}}', "-3 for t \\[0\\]"),
        ("startingOffsets", "erliest", "must be earliest, latest or JSON, not 'erliest'"),
        ("startingOffsets", '{"t":[1]}', "must be JSON"),
        ("startingOffsets", '{"t":5}', "must be JSON"),
        ("startingOffsets", '{"t":{"0":"x"}}', "'x' for t"),
        ("endingOffsets", "earliest", "must not be earliest"),
        ("startingTimestamp", "noon", "whole number"),
        ("startingOffsetsByTimestampStrategy", "first", "error or latest"),
        ("failOnDataLoss", "perhaps", "true or false"),
        ("minPartitions", "0", "positive"),
        ("maxTriggerDelay", "soon", "500ms"),
        ("kafka.auto.offset.reset", "latest", "startingOffsets"),
        ("kafka.enable.auto.commit", "true", "commitGroupId"),
        ("kafka.key.deserializer", "x", "must not be set"),
        ("kafka.interceptor.classes", "x", "must not be set"),
        ("kafka.bootstrap.servers", " ", "host:port"),
        ("kafka.isolation.level", "dirty", "isolation.level"),
    ],
)
def test_an_invalid_option_is_an_error_with_the_reason(
    option: str, value: str, reason: str
) -> None:
    with pytest.raises(OptionError, match=reason):
        validate_options(
            {"kafka.bootstrap.servers": "a:1", "subscribe": "t", option: value}
        ) or batch(**{option: value})


@pytest.mark.parametrize("text", ['{"t":"01"}', '{"t":[0.5]}', '{"t":[-1]}', '{"t":0}', "{}"])
def test_assigned_partitions_are_numbers(text: str) -> None:
    with pytest.raises(OptionError, match=r"assign (must be JSON|names no partition)"):
        batch_options({"kafka.bootstrap.servers": "a:1", "assign": text})


def test_exactly_one_topic_option_is_required() -> None:
    with pytest.raises(OptionError, match="none is set"):
        batch_options({"kafka.bootstrap.servers": "a:1"})


@pytest.mark.parametrize("option", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_rejects_ending_offsets(option: str) -> None:
    with pytest.raises(OptionError, match=f"{option} is not for streams"):
        stream(**{option: "5"})


def test_the_minimum_must_not_exceed_the_maximum() -> None:
    with pytest.raises(OptionError, match="must not be greater"):
        stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="4")
