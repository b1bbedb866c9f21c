"""Text and bytes."""

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.connect.converters.conversions import configured, values

from barnabas.connect.converters.plain import ByteArrayConverter, StringConverter
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import DataError, InvalidConfigError

TEXTS = ["", "a", None, "\u00e9\u20ac\U0001f600"]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1"])
def test_text_is_written_in_the_encoding(encoding: str) -> None:
    texts = [text if encoding[0] == "U" or text != TEXTS[3] else "\u00e9" for text in TEXTS]
    converter = configured(StringConverter, {"converter.encoding": encoding})
    written = converter.from_connect("topic", None, pa.array(texts)).payloads
    assert written.to_pylist() == [
        text if text is None else text.encode(encoding) for text in texts
    ]
    assert values(converter.to_connect("topic", written)) == texts


def test_bytes_outside_the_encoding_are_replaced_as_in_java() -> None:
    payloads = pa.array([b"a\xffb", b"\xe2\x82", b"ok"])
    assert values(configured(StringConverter).to_connect("topic", payloads)) == [
        "a\ufffdb",
        "\ufffd",
        "ok",
    ]
    ascii_converter = configured(StringConverter, {"converter.encoding": "US-ASCII"})
    assert values(ascii_converter.to_connect("topic", pa.array([b"a\xc3"]))) == ["a\ufffd"]


def test_an_unknown_encoding_is_an_error_of_the_settings() -> None:
    with pytest.raises(InvalidConfigError, match=r"converter\.encoding"):
        configured(StringConverter, {"converter.encoding": "no"})


@pytest.mark.parametrize(
    ("value", "arrow_type", "text"),
    [
        (True, pa.bool_(), "true"),
        (-7, pa.int8(), "-7"),
        (1.0, pa.float64(), "1.0"),
        (1e10, pa.float64(), "1.0E10"),
        (0.1, pa.float32(), "0.1"),
        (1e-4, pa.float64(), "1.0E-4"),
        (float("nan"), pa.float64(), "NaN"),
        (float("-inf"), pa.float64(), "-Infinity"),
        (Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
        (datetime(2024, 2, 3, 4, 5, 6), pa.timestamp("ms"), "Sat Feb 03 04:05:06 UTC 2024"),
        ([1, None], pa.list_(pa.int32()), "[1, null]"),
        ([("a", 1.5)], pa.map_(pa.string(), pa.float64()), "{a=1.5}"),
        (
            {"a": 1, "b": None, "c": {"d": True}},
            pa.struct(
                [("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.bool_())]))]
            ),
            "Struct{a=1,c=Struct{d=true}}",
        ),
    ],
)
def test_other_values_are_written_as_javas_to_string(
    value: Any, arrow_type: pa.DataType, text: str
) -> None:
    array = pa.array([None, value, None], arrow_type)[1:]
    written = configured(StringConverter).from_connect("topic", None, array).payloads
    assert written.to_pylist() == [text.encode(), None]


def test_bytes_are_left_as_they_are() -> None:
    payloads = pa.array([b"\xff\0", b"", None])
    converter = configured(ByteArrayConverter)
    read = converter.to_connect("topic", payloads)
    assert values(read) == payloads.to_pylist()
    written = converter.from_connect("topic", read.runs[0].schema, read.runs[0].values)
    assert written.payloads == payloads


def test_other_values_are_not_bytes() -> None:
    converter = configured(ByteArrayConverter)
    with pytest.raises(
        DataError, match=r"not compatible with objects of type class java\.lang\.Str"
    ):
        converter.from_connect("topic", None, pa.array(["a"]))
    with pytest.raises(DataError, match="Invalid schema type for ByteArrayConverter: STRING"):
        converter.from_connect("topic", ConnectSchema(Type.STRING), pa.array(["a"]))
