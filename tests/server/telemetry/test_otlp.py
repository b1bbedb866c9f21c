"""The decoder of what clients push: of valid messages, and of anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.telemetry.otlp_messages import (
    DELTA,
    double,
    gauge,
    histogram,
    integer,
    message,
    metrics_data,
    point,
    text,
    total,
)

from barnabas.server.telemetry.otlp import (
    FIELDS_OF_STEP,
    MAX_FIELDS,
    MAX_TEXT_CHARACTERS,
    MetricPoint,
    OtlpDecoder,
)
from barnabas.wire.errors import ErrorCode, KafkaError

VALID = metrics_data(
    gauge("org.apache.kafka.a", point(1.5, node="1"), point(-2)),
    total("org.apache.kafka.b.total", point(7), temporality=DELTA),
    histogram("c", 3, 4.5),
    resource={"group_id": "g"},
)


def decoded(content: bytes) -> list[MetricPoint]:
    decoder = OtlpDecoder(content)
    for _ in decoder.steps():
        pass
    return decoder.points


def error_of(content: bytes) -> ErrorCode | None:
    try:
        decoded(content)
    except KafkaError as error:
        return error.code
    return None


def test_gauges_sums_and_histograms_have_the_labels_of_their_resource() -> None:
    group = ("group_id", "g")
    assert decoded(VALID) == [
        MetricPoint("org.apache.kafka.a", (group, ("node", "1")), 1.5, False, False),
        MetricPoint("org.apache.kafka.a", (group,), -2.0, False, False),
        MetricPoint("org.apache.kafka.b.total", (group,), 7.0, True, True),
        MetricPoint("c.count", (group, ("node", "1")), 3.0, True, False),
        MetricPoint("c.sum", (group, ("node", "1")), 4.5, True, False),
    ]


def test_labels_may_be_numbers_and_booleans() -> None:
    (only,) = decoded(metrics_data(gauge("a", point(1, n=-5, b=True, d=0.5))))
    assert only.labels == (("n", "-5"), ("b", "true"), ("d", "0.5"))


def test_unknown_fields_are_skipped() -> None:
    unknown = integer(50, 3) + text(51, "x") + message(11, b"\x01\x02")
    assert decoded(metrics_data(gauge("a", point(1)) + unknown) + text(1000, "x"))


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a\x05\x00",
        b"\xff" * 20,
        b"\x0b",
        integer(1, 5),
        metrics_data(text(1, "a") + message(5, message(1, b"\x21\x00"))),
        metrics_data(gauge("a", point(1)))[:-3],
        message(1, message(2, message(2, message(1, b"\xff\xfe") + b"\x00"))),
    ],
)
def test_other_bytes_are_an_invalid_record(content: bytes) -> None:
    with pytest.raises(KafkaError) as invalid:
        decoded(content)
    assert invalid.value.code is ErrorCode.INVALID_RECORD


@given(st.binary(max_size=500))
def test_arbitrary_bytes_are_points_or_an_invalid_record(content: bytes) -> None:
    assert error_of(content) in (None, ErrorCode.INVALID_RECORD)


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255), st.integers(0, len(VALID)))
def test_a_damaged_message_is_points_or_an_invalid_record(at: int, byte: int, end: int) -> None:
    damaged = bytearray(VALID)
    damaged[at] = byte
    assert error_of(bytes(damaged[:end])) in (None, ErrorCode.INVALID_RECORD)


def test_a_push_with_too_many_fields_is_invalid_and_stops_there() -> None:
    decoder = OtlpDecoder(metrics_data(*[gauge("a", point(1))] * MAX_FIELDS))
    with pytest.raises(KafkaError):
        for _ in decoder.steps():
            pass
    assert decoder._fields == MAX_FIELDS + 1


def test_decoding_gives_others_their_turn() -> None:
    decoder = OtlpDecoder(metrics_data(*[gauge("a", point(1, node="1"))] * 1000))
    before = 0
    for _ in decoder.steps():
        assert decoder._fields - before < FIELDS_OF_STEP + 50
        before = decoder._fields
    assert len(decoder.points) == 1000


def test_unknown_fields_give_others_their_turn_too() -> None:
    decoder = OtlpDecoder(integer(9, 1) * 1000)
    before = 0
    for _ in decoder.steps():
        assert decoder._fields - before <= FIELDS_OF_STEP
        before = decoder._fields
    assert before == 1000


def test_each_point_of_a_histogram_has_a_short_copy_of_a_long_name() -> None:
    points = message(1, double(5, 1.0)) * 100
    long = text(1, "n" * 100_000) + message(9, points)
    found = decoded(metrics_data(long, resource={"k" * 100_000: "v" * 100_000}))
    assert len(found) == 100
    assert {len(found_point.name) for found_point in found} == {MAX_TEXT_CHARACTERS + len(".sum")}
    assert found[0].labels == (("k" * MAX_TEXT_CHARACTERS, "v" * MAX_TEXT_CHARACTERS),)
