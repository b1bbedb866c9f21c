"""Avro with schemas in a registry: Confluent's AvroConverter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.columns import ColumnDecoder, ColumnEncoder, DecodedColumn
from barnabas.columns.avro.payload_decoder import AvroDecoder
from barnabas.columns.avro.payload_encoder import AvroEncoder
from barnabas.columns.avro.raw import RawBytesDecoder, RawBytesEncoder, is_raw
from barnabas.columns.avro.schemas import parse_reader_schema
from barnabas.columns.avro.types import arrow_field
from barnabas.columns.language import SchemaSource
from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.converters.avro_mapping import AvroMapping, codec_schema
from barnabas.connect.converters.registry import (
    DeclaredSchema,
    PayloadReader,
    PayloadWriter,
    RegistryConverter,
)
from barnabas.connect.data.conform import conform
from barnabas.connect.data.schema import ConnectSchema
from barnabas.schemas.avro.model import AvroEnum, AvroFixed, AvroRecord, AvroType

if TYPE_CHECKING:
    import pyarrow as pa


class AvroConverter(RegistryConverter):
    language = "AVRO"
    title = "Avro"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def() + ConfigDef(
            ConnectorSetting(
                "enhanced.avro.schema.support",
                ConfigType.BOOLEAN,
                False,
                "Whether enums stay enums, and members of unions have full names.",
            ),
            ConnectorSetting(
                "connect.meta.data",
                ConfigType.BOOLEAN,
                True,
                "Whether names, versions and parameters of Connect are attributes of the schema.",
                Importance.LOW,
            ),
            ConnectorSetting(
                "scrub.invalid.names",
                ConfigType.BOOLEAN,
                False,
                "Whether characters that Avro does not allow in names become underscores.",
            ),
        )

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(settings, is_key=is_key)
        self._mapping = AvroMapping(
            is_enhanced=self.parsed["enhanced.avro.schema.support"],
            has_metadata=self.parsed["connect.meta.data"],
            scrubs_names=self.parsed["scrub.invalid.names"],
        )

    def reader(self, source: SchemaSource, variant: int) -> PayloadReader:
        written = parse_reader_schema(source.text, source.references)
        schema = self._mapping.connect_schema(written)
        codec = codec_schema(written)
        decoder: ColumnDecoder = RawBytesDecoder()
        if not is_raw(codec):
            decoder = AvroDecoder(codec, codec, framed=True)
        return _AvroReader(schema, decoder)

    def declare(self, schema: ConnectSchema, topic: str) -> DeclaredSchema:
        return self.describe(SchemaSource(self._mapping.avro_text(schema)))

    def describe(self, source: SchemaSource) -> DeclaredSchema:
        parsed = parse_reader_schema(source.text, source.references)
        name = _name(parsed)
        return DeclaredSchema(source, name)

    def writer(
        self, schema: ConnectSchema, declared: DeclaredSchema, schema_id: int
    ) -> PayloadWriter:
        source = declared.source
        written = codec_schema(parse_reader_schema(source.text, source.references))
        arrow_type = arrow_field("value", codec_schema(self._own(schema))).type
        encoder: ColumnEncoder = RawBytesEncoder(schema_id)
        if not is_raw(written):
            encoder = AvroEncoder(written, arrow_type, schema_id)
        return _AvroWriter(arrow_type, encoder)

    def _own(self, schema: ConnectSchema) -> AvroType:
        """Returns the schema that values are brought into: the names of its fields are Avro's."""
        return parse_reader_schema(self._mapping.avro_text(schema), {})


@dataclass(slots=True, frozen=True)
class _AvroReader:
    schema: ConnectSchema
    decoder: ColumnDecoder

    def read(self, payloads: pa.BinaryArray) -> DecodedColumn:
        decoded = self.decoder.decode(payloads)
        return DecodedColumn(conform(decoded.values, self.schema.arrow_type()), decoded.reasons)


@dataclass(slots=True, frozen=True)
class _AvroWriter:
    arrow_type: pa.DataType
    encoder: ColumnEncoder

    def write(self, values: pa.Array) -> pa.BinaryArray:
        return self.encoder.encode(conform(values, self.arrow_type))


def _name(schema: AvroType) -> str | None:
    """Returns the name of the record, also if it is optional."""
    from barnabas.columns.avro.types import without_null

    present, _ = without_null(schema)
    return present.name.full if isinstance(present, AvroRecord | AvroEnum | AvroFixed) else None
