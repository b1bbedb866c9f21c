"""Records that were written with schemas of a registry, as JSON, and JSON as such records.

Values are plain JSON: the branch of an Avro union has no name, Avro bytes are a string of the
characters U+0000 to U+00FF, as in Avro's JSON encoding, and times are in ISO 8601. Numbers that
JSON does not have are the strings "NaN", "Infinity" and "-Infinity", as in Protobuf's JSON.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.lines import InputRecord
from barnabas.cli.operations.schemas import find_latest, read_schema, register_schema
from barnabas.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from barnabas.schema_registry.client.client import fetch_referenced_texts
from barnabas.schema_registry.serdes.framing import frame_from_header, read_frame
from barnabas.schemas import SchemaType
from barnabas.schemas.framing import id_prefix, index_encodings, message_indexes
from barnabas.serialization import MessageField, SerializationContext, SerializationError

JsonValue = Any
"""What the json module reads and writes."""

_NOT_FOUND = 404
_MAX_SCHEMAS = 1000
_MAX_PROBLEMS = 20


class RecordCodec(Protocol):
    """Converts payloads of one schema. Raises ValueError, with the reason, for others."""

    def decode(self, payload: bytes) -> Any:
        """Returns a value for `as_json`."""

    def encode(self, value: JsonValue) -> bytes: ...


@dataclass(slots=True, frozen=True)
class DecodedRecord:
    """The key and value of a record: JSON values, or the bytes if they have no schema."""

    key: JsonValue | bytes
    value: JsonValue | bytes


class RecordDecoder:
    """Decodes keys and values by the schema ids that they carry, each on its own."""

    def __init__(self, client: SchemaRegistryClient, on_problem: Callable[[str], None]) -> None:
        """`on_problem` is called once with each of the first reasons why bytes are not decoded."""
        self._client = client
        self._on_problem = on_problem
        self._problems: set[str] = set()
        self._codecs: dict[int | UUID, RecordCodec | None] = {}

    def decode(self, message: Any) -> DecodedRecord:
        return DecodedRecord(
            self._decode(message.key(), message, MessageField.KEY),
            self._decode(message.value(), message, MessageField.VALUE),
        )

    def _decode(self, content: bytes | None, message: Any, field: MessageField) -> Any:
        if content is None:
            return None
        context = SerializationContext(message.topic(), field, message.headers())
        try:
            frame = frame_from_header(content, context, False) or read_frame(content, False)
        except SerializationError:
            if field is MessageField.VALUE:  # keys are often plain text
                self._report(f"values of {message.topic()} without a schema id are shown as text")
            return content
        codec = self._codec(frame.schema)
        if codec is None:
            return content
        try:
            return as_json(codec.decode(frame.payload))
        except ValueError as error:
            at = f"{message.topic()}-{message.partition()}, offset {message.offset()}"
            self._report(f"{at}: the {field} does not match schema {frame.schema}: {error}")
            return content

    def _codec(self, schema_id: int | UUID) -> RecordCodec | None:
        if schema_id not in self._codecs:
            if len(self._codecs) >= _MAX_SCHEMAS:
                self._codecs.clear()
            self._codecs[schema_id] = self._create_codec(schema_id)
        return self._codecs[schema_id]

    def _create_codec(self, schema_id: int | UUID) -> RecordCodec | None:
        try:
            if isinstance(schema_id, UUID):
                schema = self._client.get_schema_by_guid(str(schema_id))
            else:
                schema = self._client.get_schema(schema_id)
        except SchemaRegistryError as error:
            if error.http_status_code != _NOT_FOUND:
                raise
            self._report(f"the registry has no schema {schema_id}: its records are shown as text")
            return None
        try:
            return create_codec(schema, self._client)
        except ValueError as error:
            problem = f"schema {schema_id} cannot be used, so its records are shown as text"
            self._report(f"{problem}: {error}")
            return None

    def _report(self, problem: str) -> None:
        if problem not in self._problems and len(self._problems) < _MAX_PROBLEMS:
            self._problems.add(problem)
            self._on_problem(problem)


class RecordEncoder:
    """Encodes JSON with one schema. Raises CommandError if the schema cannot be used."""

    def __init__(self, client: SchemaRegistryClient, schema_id: int, schema: Schema) -> None:
        self._prefix = id_prefix(schema_id)
        try:
            self._codec = create_codec(schema, client)
        except ValueError as error:
            raise CommandError(f"schema {schema_id} cannot be used: {error}") from None

    def encode(self, text: bytes | None) -> bytes | None:
        """Raises CommandError, with the field and the reason."""
        if text is None:
            return None
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CommandError(f"not JSON: {_reason(error)}") from None
        try:
            return self._prefix + self._codec.encode(value)
        except ValueError as error:
            raise CommandError(str(error)) from None


def find_encoder(
    client: SchemaRegistryClient,
    subject: str,
    file: Path | None = None,
    schema_id: int | None = None,
) -> RecordEncoder | None:
    """Returns the encoder of a schema, which is registered if it is in a file.

    Without a file and an id, it is the latest one of the subject; None if it has none.
    """
    if file is not None:
        schema = read_schema(file)
        return RecordEncoder(client, register_schema(client, subject, schema), schema)
    if schema_id is not None:
        return RecordEncoder(client, schema_id, client.get_schema(schema_id))
    latest = find_latest(client, subject)
    if latest is None or latest.schema_id is None:
        return None
    return RecordEncoder(client, latest.schema_id, latest.schema)


@dataclass(slots=True, frozen=True)
class LineEncoder:
    """Encodes the JSON of lines; without a schema, keys stay text."""

    key: RecordEncoder | None
    value: RecordEncoder

    def encode(self, number: int, record: InputRecord) -> InputRecord:
        """Raises CommandError, which names the line."""
        try:
            key = record.key if self.key is None else self.key.encode(record.key)
            value = self.value.encode(record.value)
        except CommandError as error:
            raise CommandError(f"line {number}: {error}") from None
        return InputRecord(key, value, record.headers)


def create_codec(schema: Schema, client: SchemaRegistryClient) -> RecordCodec:
    """Raises ValueError, with the reason, if the schema cannot be used."""
    try:
        match schema.schema_type:
            case SchemaType.JSON:
                return _JsonCodec(schema, client)
            case SchemaType.PROTOBUF:
                return _ProtobufCodec(schema, client)
            case _:
                return _AvroCodec(schema, client)
    except SchemaRegistryError as error:  # of a schema that it refers to
        if error.http_status_code != _NOT_FOUND:
            raise
        raise ValueError(error.error_message) from None
    except (TypeError, KeyError, RecursionError) as error:  # a JSON text that is not a schema
        raise ValueError(_reason(error)) from None


class _AvroCodec:
    def __init__(self, schema: Schema, client: SchemaRegistryClient) -> None:
        from fastavro.schema import SchemaParseException, UnknownType

        from barnabas.schema_registry.avro import AvroDeserializer, parse_for_fastavro

        try:
            self._schema = parse_for_fastavro(schema, client)
        except UnknownType as error:
            raise ValueError(f"it refers to {error.name}, which is not defined") from None
        except SchemaParseException as error:
            raise ValueError(_reason(error)) from None
        self._deserialize = AvroDeserializer(_OneSchema(schema, client))

    def decode(self, payload: bytes) -> Any:
        try:
            return self._deserialize(id_prefix(0) + payload)
        except SerializationError as error:
            raise ValueError(_reason(error.__cause__ or error)) from None

    def encode(self, value: JsonValue) -> bytes:
        import io

        from fastavro import schemaless_writer

        from barnabas.cli.operations.avro_json import from_json

        output = io.BytesIO()
        try:
            schemaless_writer(output, self._schema, from_json(value, self._schema))
        except (TypeError, KeyError, ArithmeticError, RecursionError) as error:  # such as a range
            raise ValueError(_reason(error)) from None
        return output.getvalue()


class _JsonCodec:
    def __init__(self, schema: Schema, client: SchemaRegistryClient) -> None:
        from jsonschema import SchemaError

        from barnabas.schema_registry.json_schema import build_validator

        try:
            self._validator = build_validator(schema, client)
        except SchemaError as error:
            raise ValueError(error.message) from None

    def decode(self, payload: bytes) -> Any:
        try:
            return json.loads(payload)
        except RecursionError as error:
            raise ValueError(_reason(error)) from None

    def encode(self, value: JsonValue) -> bytes:
        from barnabas.schema_registry.json_schema import require_valid_document

        try:
            require_valid_document(value, self._validator)
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        except (SerializationError, RecursionError) as error:
            raise ValueError(_reason(error)) from None
        return text.encode()


class _ProtobufCodec:
    """Reads any message of the schema, and writes its first one."""

    def __init__(self, schema: Schema, client: SchemaRegistryClient) -> None:
        from barnabas.schemas.protobuf import parse

        self._schema = parse(schema.schema_str or "", fetch_referenced_texts(schema, client))
        self._pool = self._schema.linked.pool  # where an Any finds its message

    def decode(self, payload: bytes) -> Any:
        from google.protobuf.json_format import Error, MessageToDict
        from google.protobuf.message import DecodeError
        from google.protobuf.message_factory import GetMessageClass

        from barnabas.schemas.framing import read_indexes

        indexes, at = read_indexes(payload, 0)
        message = GetMessageClass(self._schema.message_at(indexes))()
        try:
            message.ParseFromString(payload[at:])
            return MessageToDict(
                message, preserving_proto_field_name=True, descriptor_pool=self._pool
            )
        except (DecodeError, Error, TypeError, RecursionError) as error:
            raise ValueError(_reason(error)) from None

    def encode(self, value: JsonValue) -> bytes:
        from google.protobuf.json_format import Error, ParseDict
        from google.protobuf.message import EncodeError
        from google.protobuf.message_factory import GetMessageClass

        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not a JSON object")
        descriptor = self._schema.message(self._schema.name or "")
        try:
            message = ParseDict(value, GetMessageClass(descriptor)(), descriptor_pool=self._pool)
            encoded: bytes = message.SerializeToString()
        except (EncodeError, Error, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(_reason(error)) from None
        return index_encodings(message_indexes(descriptor))[0] + encoded


class _OneSchema:
    """A registry's client for a deserializer whose payloads all have one schema."""

    def __init__(self, schema: Schema, client: SchemaRegistryClient) -> None:
        self._schema = schema
        self.get_version = client.get_version

    def get_schema(self, *_: Any) -> Schema:
        return self._schema


def as_json(value: Any) -> JsonValue:
    """Converts a decoded value. Raises ValueError if it has no JSON form."""
    try:
        return _convert(value)
    except RecursionError as error:
        raise ValueError(_reason(error)) from None


def _convert(value: Any) -> JsonValue:
    match value:
        case str() | bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else _NOT_FINITE[str(value)]
        case dict():
            return {key: _convert(item) for key, item in value.items()}
        case list():
            return [_convert(item) for item in value]
        case bytes():
            return value.decode("latin-1")
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    raise ValueError(f"{type(value).__name__} has no JSON form")


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def as_json_text(value: JsonValue) -> bytes:
    """Returns one line of JSON."""
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")


def _reason(error: BaseException) -> str:
    """Returns the text of an error, in one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return " ".join(str(error).split()) or type(error).__name__
