"""Protobuf with schemas in a registry: Confluent's ProtobufConverter.

Two things differ from it: fields that may be null are declared optional, so that null is not read
as zero, and Google's wrappers are their values. A null list is written as an empty one, which
Protobuf does not tell apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor

from barnabas.columns import DecodedColumn
from barnabas.columns.language import SchemaSource
from barnabas.columns.protobuf.payload_decoder import ProtobufDecoder
from barnabas.columns.protobuf.payload_encoder import ProtobufEncoder
from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.converters.protobuf_mapping import ProtobufMapping
from barnabas.connect.converters.protobuf_values import from_messages, to_messages
from barnabas.connect.converters.registry import (
    DeclaredSchema,
    PayloadReader,
    PayloadWriter,
    RegistryConverter,
)
from barnabas.connect.data.schema import ConnectSchema
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import (
    ID_PREFIX_BYTES,
    FramingError,
    id_prefix,
    index_encodings,
    message_indexes,
    read_indexes,
)
from barnabas.schemas.protobuf import ProtobufSchema, parse

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_PATHS = 1 << 16


class ProtobufConverter(RegistryConverter):
    language = "PROTOBUF"
    title = "Protobuf"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def() + ConfigDef(
            ConnectorSetting(
                "enhanced.protobuf.schema.support",
                ConfigType.BOOLEAN,
                False,
                "Whether schemas have the full names of messages.",
            ),
            ConnectorSetting(
                "flatten.unions",
                ConfigType.BOOLEAN,
                False,
                "Whether the fields of a oneof are fields of the message.",
            ),
            ConnectorSetting(
                "optional.for.nullables",
                ConfigType.BOOLEAN,
                True,
                "Whether fields that may be null are declared optional. If not, null is written "
                "as zero.",
            ),
            ConnectorSetting(
                "scrub.invalid.names",
                ConfigType.BOOLEAN,
                False,
                "Whether characters that Protobuf does not allow in names become underscores.",
                Importance.MEDIUM,
            ),
        )

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(settings, is_key=is_key)
        self._mapping = ProtobufMapping(
            is_enhanced=self.parsed["enhanced.protobuf.schema.support"],
            flattens_unions=self.parsed["flatten.unions"],
            scrubs_names=self.parsed["scrub.invalid.names"],
            has_optional_fields=self.parsed["optional.for.nullables"],
        )
        self._paths: list[tuple[int, ...]] = [(0,)]

    def variants(self, payloads: pa.BinaryArray) -> pa.Array | None:
        """Returns which message of the file each payload is; None if all are the first."""
        import pyarrow as pa
        import pyarrow.compute as pc

        first = pc.binary_slice(payloads, ID_PREFIX_BYTES, ID_PREFIX_BYTES + 1)
        if pc.all(pc.equal(first, pa.scalar(b"\0", pa.binary())), min_count=0).as_py():
            return None
        return pa.array([self._variant(payload) for payload in payloads.to_pylist()], pa.int64())

    def _variant(self, payload: bytes | None) -> int:
        try:
            path, _ = read_indexes(payload or b"", ID_PREFIX_BYTES)
        except FramingError:
            return 0
        if path not in self._paths:
            if len(self._paths) == _MAX_PATHS:
                return 0
            self._paths.append(path)
        return self._paths.index(path)

    def reader(self, source: SchemaSource, variant: int) -> PayloadReader:
        written = parse(source.text, source.references)
        message = written.message_at(self._paths[variant])
        return _ProtobufReader(
            self._mapping.connect_schema(message),
            message,
            ProtobufDecoder(message, written),
            self._mapping,
        )

    def declare(self, schema: ConnectSchema, topic: str) -> DeclaredSchema:
        return self.describe(SchemaSource(self._mapping.proto_text(schema)))

    def describe(self, source: SchemaSource) -> DeclaredSchema:
        return DeclaredSchema(source, parse(source.text, source.references).name)

    def writer(
        self, schema: ConnectSchema, declared: DeclaredSchema, schema_id: int
    ) -> PayloadWriter:
        import pyarrow as pa

        written = parse(declared.source.text, declared.source.references)
        message = _first_message(written)
        prefix = id_prefix(schema_id) + index_encodings(message_indexes(message))[0]
        messages = to_messages(pa.nulls(0, schema.arrow_type()), schema, self._mapping)
        encoder = ProtobufEncoder(message, messages.type, prefix)
        return _ProtobufWriter(schema, self._mapping, encoder)


def _first_message(schema: ProtobufSchema) -> Descriptor:
    if schema.name is None:
        raise SchemaError("The schema has no message.")
    return schema.message(schema.name)


@dataclass(slots=True, frozen=True)
class _ProtobufReader:
    schema: ConnectSchema
    message: Descriptor
    decoder: ProtobufDecoder
    mapping: ProtobufMapping

    def read(self, payloads: pa.BinaryArray) -> DecodedColumn:
        decoded = self.decoder.decode(payloads)
        values = from_messages(decoded.values, self.message, self.schema, self.mapping)
        return DecodedColumn(values, decoded.reasons)


@dataclass(slots=True, frozen=True)
class _ProtobufWriter:
    schema: ConnectSchema
    mapping: ProtobufMapping
    encoder: ProtobufEncoder

    def write(self, values: pa.Array) -> pa.BinaryArray:
        return self.encoder.encode(to_messages(values, self.schema, self.mapping))
