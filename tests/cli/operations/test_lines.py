"""Reading and formatting lines by the properties of Kafka's console tools."""

import struct

import pytest

from barnabas import Message
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.lines import InputRecord, LineFormatter, LineReader, deserializer


def read(line: str, **properties: str) -> InputRecord:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    (record,) = LineReader.from_properties(named).records([line.encode() + b"\n"])
    return record


def test_a_line_is_a_value() -> None:
    assert read("hello\tworld") == InputRecord(None, b"hello\tworld", [])


def test_a_key_precedes_the_separator() -> None:
    assert read("k\tv", parse_key="true") == InputRecord(b"k", b"v", [])
    assert read("k:v:w", parse_key="true", key_separator=":") == InputRecord(b"k", b"v:w", [])


def test_headers_precede_the_key() -> None:
    record = read("a:1,b:2\tk\tv", parse_key="true", parse_headers="true")
    assert record == InputRecord(b"k", b"v", [("a", b"1"), ("b", b"2")])


def test_the_null_marker_means_null() -> None:
    record = read("N\tN\tN", parse_key="true", parse_headers="true", null_marker="N")
    assert record == InputRecord(None, None, [])
    assert read("a:N\tv", parse_headers="true", null_marker="N").headers == [("a", None)]


def test_a_line_without_a_separator_is_an_error_with_its_number() -> None:
    with pytest.raises(CommandError, match="No key separator found on line number 2: 'c'"):
        list(LineReader(parse_key=True).records([b"a\tb\n", b"c\n"]))
    assert list(LineReader(parse_key=True, ignore_error=True).records([b"c\n"])) == [
        InputRecord(None, b"c", [])
    ]


def test_bytes_that_are_not_utf8_are_unchanged() -> None:
    (record,) = LineReader(parse_key=True).records([b"\xff\t\x00\xfe\n"])
    assert record == InputRecord(b"\xff", b"\x00\xfe", [])
    assert LineFormatter(key=True).line(Message(topic="t", key=b"\xff", value=b"\x00\xfe")) == (
        b"\xff\t\x00\xfe\n"
    )


def test_unknown_properties_are_ignored() -> None:
    assert LineReader.from_properties({"parse.keys": "true"}) == LineReader()
    assert (
        LineFormatter.from_properties({"print.keys": "true", "schema.registry.url": "x"})
        == LineFormatter()
    )


def message() -> Message:
    return Message(
        topic="t",
        partition=3,
        offset=7,
        key=b"k",
        value=b"v",
        headers=[("h", b"x"), ("n", None)],
        timestamp=(1, 1_000),
    )


def test_a_record_is_formatted_as_its_value() -> None:
    assert LineFormatter().line(message()) == b"v\n"


def test_everything_is_printed_in_kafkas_order() -> None:
    parts = ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")
    formatter = LineFormatter.from_properties({f"print.{part}": "true" for part in parts})
    expected = b"CreateTime:1000\tPartition:3\tOffset:7\tEpoch:NOT_PRESENT\th:x,n:null\tk\tv\n"
    assert formatter.line(message()) == expected


def test_separators_and_the_null_literal_are_configurable() -> None:
    formatter = LineFormatter.from_properties(
        {"print.key": "true", "key.separator": "|", "line.separator": ";", "null.literal": "-"}
    )
    assert formatter.line(Message(topic="t", key=None, value=b"v")) == b"-|v;"


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", struct.pack(">q", 5), "5"),
        ("IntegerDeserializer", struct.pack(">i", -1), "-1"),
        ("DoubleDeserializer", struct.pack(">d", 0.5), "0.5"),
        ("BytesDeserializer", b"a\x00", "a\\x00"),
        ("StringDeserializer", b"\xc3\xa9", "é"),
    ],
)
def test_deserializers_match_javas_classes(name: str, content: bytes, shown: str) -> None:
    assert deserializer(name)(content) == shown.encode()


def test_a_number_of_the_wrong_size_is_rejected() -> None:
    with pytest.raises(CommandError, match="3 bytes"):
        deserializer("LongDeserializer")(b"abc")
