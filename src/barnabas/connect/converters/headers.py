"""Converters of the values of headers.

A batch keeps headers converted. Transforms that make headers of fields call `to_bytes`, and
connectors that need typed headers `to_values`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
)
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.converters.literals import parse_literal
from barnabas.connect.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from barnabas.connect.converters.plain import ByteArrayConverter, StringConverter
from barnabas.connect.converters.runs import conversion_of, nulls_run, rows_of_groups
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class HeaderConverter(ABC):
    """Converts the values of headers. It is created once in each process, and then configured."""

    version: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Returns the settings, without the prefix `header.converter.`."""

    def configure(self, settings: Mapping[str, str]) -> None:
        """Takes the settings without prefix."""
        self.config_def().parse(settings)

    @abstractmethod
    def to_values(self, payloads: pa.BinaryArray) -> Conversion:
        """Decodes values. Those of several schemas are several runs."""

    @abstractmethod
    def to_bytes(self, schema: ConnectSchema | None, values: pa.Array) -> ConvertedBytes:
        """Encodes values. Raises DataError if none of them can be encoded."""


class SimpleHeaderConverter(HeaderConverter):
    """Text, whose type is inferred when it is read. Bytes that are not UTF-8 stay bytes."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def to_values(self, payloads: pa.BinaryArray) -> Conversion:
        import pyarrow as pa

        if payloads.null_count == len(payloads):
            return nulls_run(len(payloads))
        encoded = payloads.dictionary_encode()
        literals = [_parsed(payload) for payload in encoded.dictionary.to_pylist()]
        schemas = list(dict.fromkeys(schema for schema, _ in literals if schema is not None))
        rows = encoded.indices.to_pylist()
        numbers = {schema: number for number, schema in enumerate(schemas)}
        group_of_row = [
            -1 if index is None or literals[index][0] is None else numbers[_schema(literals[index])]
            for index in rows
        ]
        groups = view(pa.array(group_of_row, pa.int32()).buffers()[1], "i")[: len(rows)]
        parts = []
        for group, members in rows_of_groups(groups, len(schemas)):
            schema = schemas[group]
            values = pa.array([literals[rows[row]][1] for row in members], schema.arrow_type())
            parts.append((members, Conversion([Converted(0, schema, values)])))
        return conversion_of(groups, parts, ())

    def to_bytes(self, schema: ConnectSchema | None, values: pa.Array) -> ConvertedBytes:
        import pyarrow as pa

        from barnabas.connect.transforms.value_text import value_texts

        return ConvertedBytes(value_texts(values, schema).cast(pa.binary()))


def _schema(literal: tuple[ConnectSchema | None, Any]) -> ConnectSchema:
    assert literal[0] is not None
    return literal[0]


def _parsed(payload: bytes) -> tuple[ConnectSchema | None, Any]:
    try:
        literal = parse_literal(payload.decode())
    except UnicodeDecodeError:
        return ConnectSchema(Type.BYTES), payload
    return literal.schema, literal.value


class ConverterOfHeaders(HeaderConverter):
    """Uses a converter of keys and values."""

    converter_class: ClassVar[type[Converter]]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.converter_class.config_def()

    def configure(self, settings: Mapping[str, str]) -> None:
        self._converter = self.converter_class()
        self._converter.configure(settings, is_key=False)

    def to_values(self, payloads: pa.BinaryArray) -> Conversion:
        return self._converter.to_connect("", payloads)

    def to_bytes(self, schema: ConnectSchema | None, values: pa.Array) -> ConvertedBytes:
        return self._converter.from_connect("", schema, values)


class StringHeaderConverter(ConverterOfHeaders):
    converter_class = StringConverter


class ByteArrayHeaderConverter(ConverterOfHeaders):
    converter_class = ByteArrayConverter


class JsonHeaderConverter(ConverterOfHeaders):
    converter_class = JsonConverter


class BooleanHeaderConverter(ConverterOfHeaders):
    converter_class = BooleanConverter


class ShortHeaderConverter(ConverterOfHeaders):
    converter_class = ShortConverter


class IntegerHeaderConverter(ConverterOfHeaders):
    converter_class = IntegerConverter


class LongHeaderConverter(ConverterOfHeaders):
    converter_class = LongConverter


class FloatHeaderConverter(ConverterOfHeaders):
    converter_class = FloatConverter


class DoubleHeaderConverter(ConverterOfHeaders):
    converter_class = DoubleConverter
