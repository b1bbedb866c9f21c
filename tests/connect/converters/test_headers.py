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
from barnabas.connect.data.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, Schema, Type


def configured(
    converter_class: type[HeaderConverter], settings: dict[str, str] | None = None
) -> HeaderConverter:
    converter = converter_class()
    converter.configure(settings or {})
    return converter


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("", Schema(Type.STRING), ""),
        ("a text", Schema(Type.STRING), "a text"),
        (" spaces ", Schema(Type.STRING), " spaces "),
        ("null", None, None),
        ("1e400", Schema(Type.STRING), "1e400"),
        ("1,2", Schema(Type.STRING), "1,2"),
        ("true", Schema(Type.BOOLEAN), True),
        ("True", Schema(Type.STRING), "True"),
        ("12", Schema(Type.INT8), 12),
        ("-129", Schema(Type.INT16), -129),
        ("+40000", Schema(Type.INT32), 40000),
        ("9223372036854775807", Schema(Type.INT64), 2**63 - 1),
        (
            "9223372036854775808",
            Schema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: "0"}),
            Decimal(2**63),
        ),
        ("1.5", Schema(Type.FLOAT32), 1.5),
        ("1.5e300", Schema(Type.FLOAT64), 1.5e300),
        ("1.0", Schema(Type.INT8), 1),
        ("12a", Schema(Type.STRING), "12a"),
        ("-", Schema(Type.STRING), "-"),
        ("2024-02-29", Schema(Type.INT32, name=DATE, version=1), date(2024, 2, 29)),
        ("2024-13-29", Schema(Type.STRING), "2024-13-29"),
        ("01:02:03.004Z", Schema(Type.INT32, name=TIME, version=1), time(1, 2, 3, 4000)),
        (
            "2024-02-29T01:02:03.004Z",
            Schema(Type.INT64, name=TIMESTAMP, version=1),
            datetime(2024, 2, 29, 1, 2, 3, 4000, UTC),
        ),
        ("[1, 300]", Schema(Type.ARRAY, value_schema=Schema(Type.INT16)), [1, 300]),
        ("[1, 2.5]", Schema(Type.ARRAY, value_schema=Schema(Type.FLOAT32)), [1.0, 2.5]),
        (
            '["a\\"b", null]',
            Schema(Type.ARRAY, value_schema=Schema(Type.STRING, is_optional=True)),
            ['a"b', None],
        ),
        (
            '{"a": [true], "b": []}',
            Schema(Type.STRING),
            '{"a": [true], "b": []}',
        ),
        (
            '{"a": 1, "b": 2}',
            Schema(Type.MAP, key_schema=Schema(Type.STRING), value_schema=Schema(Type.INT8)),
            [("a", 1), ("b", 2)],
        ),
        (
            "[2024-02-29T01:02:03.004Z]",
            Schema(Type.ARRAY, value_schema=Schema(Type.INT64, name=TIMESTAMP, version=1)),
            [datetime(2024, 2, 29, 1, 2, 3, 4000, UTC)],
        ),
        ('[1, "a"]', Schema(Type.STRING), '[1, "a"]'),
        ("[1", Schema(Type.STRING), "[1"),
        ("[1,]", Schema(Type.STRING), "[1,]"),
        ("{a:1}", Schema(Type.STRING), "{a:1}"),
        ("[" * 2000, Schema(Type.STRING), "[" * 2000),
    ],
)
def test_the_type_of_a_text_is_inferred(text: str, schema: Schema | None, value: Any) -> None:
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
    written = integers.to_bytes(Schema(Type.INT32), pa.array([1], pa.int32())).payloads
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
