"""The values of headers, and the types of their texts."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import rows, values

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.converters.headers import (
    ByteArrayHeaderConverter,
    HeaderConverter,
    IntegerHeaderConverter,
    JsonHeaderConverter,
    SimpleHeaderConverter,
    StringHeaderConverter,
)
from barnabas.connect.converters.literals import parse_literal
from barnabas.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Type


def configured(
    converter_class: type[HeaderConverter], settings: dict[str, str] | None = None
) -> HeaderConverter:
    converter = converter_class()
    converter.configure(settings or {})
    return converter


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("", ConnectSchema(Type.STRING), ""),
        ("a text", ConnectSchema(Type.STRING), "a text"),
        (" spaces ", ConnectSchema(Type.STRING), " spaces "),
        ("null", None, None),
        ("1e400", ConnectSchema(Type.STRING), "1e400"),
        ("1,2", ConnectSchema(Type.STRING), "1,2"),
        ("true", ConnectSchema(Type.BOOLEAN), True),
        ("True", ConnectSchema(Type.STRING), "True"),
        ("12", ConnectSchema(Type.INT8), 12),
        ("-129", ConnectSchema(Type.INT16), -129),
        ("+40000", ConnectSchema(Type.INT32), 40000),
        ("9223372036854775807", ConnectSchema(Type.INT64), 2**63 - 1),
        (
            "9223372036854775808",
            ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: "0"}),
            Decimal(2**63),
        ),
        ("1.5", ConnectSchema(Type.FLOAT32), 1.5),
        ("1.5e300", ConnectSchema(Type.FLOAT64), 1.5e300),
        ("1.0", ConnectSchema(Type.INT8), 1),
        ("12a", ConnectSchema(Type.STRING), "12a"),
        ("-", ConnectSchema(Type.STRING), "-"),
        ("2024-02-29", ConnectSchema(Type.INT32, name=DATE, version=1), date(2024, 2, 29)),
        ("2024-13-29", ConnectSchema(Type.STRING), "2024-13-29"),
        ("01:02:03.004Z", ConnectSchema(Type.INT32, name=TIME, version=1), time(1, 2, 3, 4000)),
        (
            "2024-02-29T01:02:03.004Z",
            ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
            datetime(2024, 2, 29, 1, 2, 3, 4000, UTC),
        ),
        ("[1, 300]", ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.INT16)), [1, 300]),
        (
            "[1, 2.5]",
            ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.FLOAT32)),
            [1.0, 2.5],
        ),
        (
            '["a\\"b", null]',
            ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.STRING, is_optional=True)),
            ['a"b', None],
        ),
        (
            '{"a": [true], "b": []}',
            ConnectSchema(Type.STRING),
            '{"a": [true], "b": []}',
        ),
        (
            '{"a": 1, "b": 2}',
            ConnectSchema(
                Type.MAP,
                key_schema=ConnectSchema(Type.STRING),
                value_schema=ConnectSchema(Type.INT8),
            ),
            [("a", 1), ("b", 2)],
        ),
        (
            "[2024-02-29T01:02:03.004Z]",
            ConnectSchema(
                Type.ARRAY, value_schema=ConnectSchema(Type.INT64, name=TIMESTAMP, version=1)
            ),
            [datetime(2024, 2, 29, 1, 2, 3, 4000, UTC)],
        ),
        ('[1, "a"]', ConnectSchema(Type.STRING), '[1, "a"]'),
        ("[1", ConnectSchema(Type.STRING), "[1"),
        ("[1,]", ConnectSchema(Type.STRING), "[1,]"),
        ("{a:1}", ConnectSchema(Type.STRING), "{a:1}"),
        ("[" * 2000, ConnectSchema(Type.STRING), "[" * 2000),
    ],
)
def test_the_type_of_a_text_is_inferred(
    text: str, schema: ConnectSchema | None, value: Any
) -> None:
    literal = parse_literal(text)
    assert (literal.schema, literal.value) == (schema, value)


@given(st.text('0123456789+-.eE:TZ[]{}",\\ antrufls', max_size=20) | st.text(max_size=20))
def test_any_text_is_a_value(text: str) -> None:
    converter = configured(SimpleHeaderConverter)
    payload = text.encode(errors="replace")
    assert len(rows(converter.to_values(pa.array([payload])))) == 1


def test_headers_of_several_types_keep_their_order() -> None:
    payloads = pa.array([b"1", None, b"2", b"x", b"3", b"\xff", b"4", b"4"])
    converted = configured(SimpleHeaderConverter).to_values(payloads)
    assert values(converted) == [1, None, 2, "x", 3, b"\xff", 4, 4]
    assert [run.start for run in converted.runs] == [0, 3, 4, 5, 6]
    assert values(configured(SimpleHeaderConverter).to_values(payloads[1:2])) == [None]


def test_values_are_written_as_text() -> None:
    converter = configured(SimpleHeaderConverter)
    for column, texts in (
        (pa.array([1, None]), [b"1", None]),
        (pa.array([1.5, 1e10]), [b"1.5", b"1.0E10"]),
        (pa.array(["a", "1"]), [b"a", b"1"]),
        (pa.array([[1, 2]]), [b"[1,2]"]),
        (pa.array([date(2024, 2, 29)]), [b"2024-02-29"]),
    ):
        assert converter.to_bytes(None, column).payloads.to_pylist() == texts


def test_other_converters_serve_headers_too() -> None:
    integers = configured(IntegerHeaderConverter)
    written = integers.to_bytes(ConnectSchema(Type.INT32), pa.array([1], pa.int32())).payloads
    assert written.to_pylist() == [b"\0\0\0\1"]
    assert values(integers.to_values(written)) == [1]
    text = configured(StringHeaderConverter)
    assert values(text.to_values(pa.array([b"12"]))) == ["12"]
    plain = configured(ByteArrayHeaderConverter)
    assert values(plain.to_values(pa.array([b"\xff"]))) == [b"\xff"]
    documents = configured(JsonHeaderConverter, {"schemas.enable": "false"})
    assert values(documents.to_values(pa.array([b'{"a":1}']))) == [{"a": 1}]
    assert "schemas.enable" in JsonHeaderConverter.config_def()
    assert isinstance(SimpleHeaderConverter.config_def(), ConfigDef)
