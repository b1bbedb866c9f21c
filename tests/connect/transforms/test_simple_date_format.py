"""SimpleDateFormat: the columnar path agrees with the path for single values, and with Java."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.transforms.java_calendar import format_time, parse_time
from barnabas.connect.transforms.simple_date_format import SimpleDateFormat

PATTERNS = (
    "MM/dd/yyyy hh:mm a",
    "d MMMM yyyy, h:mm:ss a",
    "yyyy-M-d H:m:s",
    "yyyyMMdd",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "EEE, d MMM yyyy hh:mm:ss a z",
    "y/M/d H:m:s.S",
    "EEEE MMMM dd ''yy'' k K",
    "D yyyy u Z XX G",
    "h 'o''clock'",
    "SSSS",
)
UNAMBIGUOUS = ("MM/dd/yyyy hh:mm a", "yyyy-M-d H:m:s", *PATTERNS[4:8])

timestamps = st.integers(-(10**14), 3 * 10**14)


def timestamps_of(*values: int | None) -> pa.Array:
    return pa.array(values, pa.timestamp("ms", "UTC"))


@given(st.sampled_from(PATTERNS), st.lists(timestamps, min_size=1, max_size=9))
def test_columns_are_written_as_single_values(pattern: str, values: list[int]) -> None:
    form = SimpleDateFormat(pattern)
    expected = [format_time(form.tokens, value) for value in values]
    assert form.format(timestamps_of(*values)).to_pylist() == expected
    for value, text in zip(values, expected, strict=True):
        assert form.format(timestamps_of(value, None)).to_pylist() == [text, None]


@given(st.sampled_from(UNAMBIGUOUS), st.lists(timestamps, min_size=1, max_size=9))
def test_what_is_written_can_be_read(pattern: str, values: list[int]) -> None:
    form = SimpleDateFormat(pattern)
    texts = form.format(timestamps_of(*values))
    read, failed = form.parse(texts)
    assert not failed
    assert form.format(read) == texts


@given(
    st.sampled_from(PATTERNS),
    timestamps,
    st.integers(0, 40),
    st.sampled_from(("", "0", "9", " ", "-", "x", "Z")),
)
def test_columns_are_read_as_single_values(
    pattern: str, value: int, position: int, inserted: str
) -> None:
    form = SimpleDateFormat(pattern)
    text = form.format(timestamps_of(value))[0].as_py()
    text = text[:position] + inserted + text[position:]
    read, failed = form.parse(pa.array([text, None]))
    assert read.cast(pa.int64())[0].as_py() == parse_time(form.tokens, text)
    assert failed == ([0] if parse_time(form.tokens, text) is None else [])
    assert read[1].as_py() is None


def test_gregorian_dates_are_those_of_datetime() -> None:
    form = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS")
    start = datetime(1582, 10, 15, tzinfo=UTC)
    moments = [start + timedelta(days=97 * number, seconds=number) for number in range(1500)]
    written = form.format(pa.array(moments, pa.timestamp("ms", "UTC"))).to_pylist()
    assert written == [moment.strftime("%Y-%m-%dT%H:%M:%S.000") for moment in moments]


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (-12219292800000, "1582-10-15"),
        (-12219292800001, "1582-10-04"),
        (-62135596800000, "0001-01-03"),
        (-14825808000000, "1500-03-01"),
        (-14825894400000, "1500-02-29"),
    ],
)
def test_dates_before_the_gregorian_calendar_are_julian(timestamp: int, text: str) -> None:
    form = SimpleDateFormat("yyyy-MM-dd")
    assert form.format(timestamps_of(timestamp)).to_pylist() == [text]
    read, _ = form.parse(pa.array([text]))
    assert read.cast(pa.int64())[0].as_py() == timestamp - timestamp % 86_400_000


@pytest.mark.parametrize(
    ("pattern", "text", "timestamp"),
    [
        ("yyyy-MM-dd", "2023-13-40", "2024-02-09T00:00:00"),
        ("yyyy-MM-dd", "2023-02-29", "2023-03-01T00:00:00"),
        ("yyyy-MM-dd", "2023-02-28 and more", "2023-02-28T00:00:00"),
        ("HH:mm:ss.SSSSSS", "00:00:00.123456", "1970-01-01T00:02:03.456"),
        ("yyyy-DDD", "2024-366", "2024-12-31T00:00:00"),
        ("hh:mm a", "12:30 AM", "1970-01-01T00:30:00"),
        ("HH:mm Z", "10:00 -0330", "1970-01-01T13:30:00"),
        ("HH:mm z", "10:00 PST", "1970-01-01T18:00:00"),
        ("HH:mm X", "10:00 +02", "1970-01-01T08:00:00"),
        ("d MMMM yyyy G", "1 march 2000 AD", "2000-03-01T00:00:00"),
    ],
)
def test_texts_are_read_as_java_does(pattern: str, text: str, timestamp: str) -> None:
    read, failed = SimpleDateFormat(pattern).parse(pa.array([text]))
    assert not failed
    assert read[0].as_py() == datetime.fromisoformat(timestamp).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("foo", "Illegal pattern character 'f'"),
        ("yyyy'", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
    ],
)
def test_invalid_patterns_have_the_messages_of_java(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimpleDateFormat(pattern)
