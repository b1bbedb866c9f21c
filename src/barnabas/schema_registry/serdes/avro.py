"""Avro: records as dicts, by fastavro."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastavro import schemaless_reader, schemaless_writer
from fastavro.repository.base import AbstractSchemaRepository
from fastavro.schema import load_schema

from barnabas.schema_registry.client.client import fetch_referenced_texts
from barnabas.schema_registry.client.models import Schema
from barnabas.schema_registry.serdes.aio import AsyncDeserializer, AsyncSerializer
from barnabas.schema_registry.serdes.deserializer import (
    DeserializerSchemas,
    RegistryDeserializer,
    describe_payload,
)
from barnabas.schema_registry.serdes.framing import Frame
from barnabas.schema_registry.serdes.serde import SerdeConf, as_schema
from barnabas.schema_registry.serdes.serializer import RegistrySerializer, SubjectEncoding
from barnabas.schemas import SchemaError
from barnabas.schemas.avro._nesting import find_nesting_fault, is_recursive
from barnabas.schemas.avro.model import AvroType
from barnabas.schemas.avro.parser import parse_stored_schema
from barnabas.serialization import SerializationContext, SerializationError

_ROOT = "$root"


class AvroSerializer(RegistrySerializer):
    """A dict, or what `to_dict` makes one of, as framed Avro.

    ValueError or TypeError where it does not fit the schema.
    """

    schema_type = "AVRO"

    def __init__(
        self,
        schema_registry_client: Any,
        schema_str: str | Schema | None = None,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        if to_dict is not None and not callable(to_dict):
            raise ValueError("to_dict must be callable: to_dict(object, SerializationContext)")
        super().__init__(schema_registry_client, conf)
        self._to_dict = to_dict
        self._schema = as_schema(wrap_schema_text(schema_str), self.schema_type)
        self._name = None
        if self._schema is not None:
            self._name = record_name(self._parsed(self._schema))

    def _configure(self, left: SerdeConf) -> None:
        self._strict = left.flag("validate.strict", False)
        self._strict_allow_default = left.flag("validate.strict.allow.default", False)

    def _record_name(self, obj: Any) -> str | None:
        return self._name

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        return self._schema

    def _parsed(self, schema: Any) -> Any:
        return parse_for_fastavro(schema, self._registry)

    def _encoded(
        self, obj: Any, writer: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        if self._to_dict is not None:
            obj = self._to_dict(obj, ctx)  # type: ignore[arg-type]
        if is_plain_bytes(writer.schema):
            return obj.encode() if isinstance(obj, str) else bytes(obj)
        written = io.BytesIO()
        schemaless_writer(
            written,
            writer.schema,
            obj,
            strict=self._strict,
            strict_allow_default=self._strict_allow_default,
        )
        return written.getvalue()


class AvroDeserializer(RegistryDeserializer):
    """Framed Avro as a dict, or as what `from_dict` makes of it.

    With a schema of its own, or the latest of the subject, what was written with another is
    resolved to it as Avro says: fields are dropped, or get their defaults.
    """

    schema_type = "AVRO"

    def __init__(
        self,
        schema_registry_client: Any,
        schema_str: str | Schema | None = None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        return_record_name: bool = False,
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        if from_dict is not None and not callable(from_dict):
            raise ValueError("from_dict must be callable: from_dict(dict, SerializationContext)")
        if not isinstance(return_record_name, bool):
            raise ValueError("return_record_name must be True or False")
        self._from_dict = from_dict
        self._return_record_name = return_record_name
        schema = as_schema(wrap_schema_text(schema_str), self.schema_type)
        super().__init__(schema_registry_client, schema, conf)

    def _parsed(self, schema: Any) -> Any:
        return _Readable(
            parse_for_fastavro(schema, self._registry), _recursive_schema(schema, self._registry)
        )

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        return record_name(parsed.schema)

    def _decoded(
        self, frame: Frame, reader: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        if is_plain_bytes(reader.writer_schema.schema):
            value: Any = frame.payload
        else:
            value = self._read(frame, reader, ctx)
        return value if self._from_dict is None else self._from_dict(value, ctx)  # type: ignore[arg-type]

    def _read(
        self, frame: Frame, reader: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        try:
            reader.writer_schema.refuse_malformed(frame.payload)
            return schemaless_reader(
                io.BytesIO(frame.payload),
                reader.writer_schema.schema,
                None if reader.reader_schema is None else reader.reader_schema.schema,
                return_record_name=self._return_record_name,
            )
        except Exception as problem:
            raise SerializationError(
                f"{describe_payload(ctx)} is not Avro of schema {frame.schema}: "
                f"{problem or type(problem).__name__}"
            ) from problem


class AsyncAvroSerializer(AsyncSerializer):
    kind = AvroSerializer


class AsyncAvroDeserializer(AsyncDeserializer):
    kind = AvroDeserializer


@dataclass(slots=True, frozen=True)
class _Readable:
    schema: Any
    """As fastavro has it."""
    recursive_schema: AvroType | None
    """Set if a record contains itself. fastavro would follow such a payload until the stack
    overflows and the process ends, so its nesting is checked first."""

    def refuse_malformed(self, payload: bytes) -> None:
        if self.recursive_schema is not None:
            fault = find_nesting_fault(self.recursive_schema, payload)
            if fault:
                raise ValueError(fault)


def wrap_schema_text(schema: Any) -> Any:
    """`"string"` is a schema too; confluent_kafka registers it as an object, under one id with
    ours."""
    if not isinstance(schema, str):
        return schema
    text = schema.strip()
    return text if text.startswith(("{", "[")) else f'{{"type":{text}}}'


def parse_for_fastavro(schema: Any, client: Any) -> Any:
    """As fastavro wants it, with what it refers to."""
    texts = fetch_referenced_texts(schema, client)
    for text in list(texts.values()):
        texts.setdefault(_full_name(json.loads(text)), text)
    texts[_ROOT] = schema.schema_str
    return load_schema(_ROOT, repo=_Texts(texts))


def record_name(parsed: Any) -> str | None:
    """Of the record; a primitive is called by its type, a union has no name."""
    if not isinstance(parsed, dict):
        return None
    name: str | None = parsed.get("name", parsed.get("type"))
    return name


def is_plain_bytes(parsed: Any) -> bool:
    """Whether the payload is the bytes themselves, without their length, as Confluent has it."""
    if isinstance(parsed, dict):
        return parsed.get("type") == "bytes" and "logicalType" not in parsed
    return bool(parsed == "bytes")


def _recursive_schema(schema: Any, client: Any) -> AvroType | None:
    try:
        parsed = parse_stored_schema(schema.schema_str, fetch_referenced_texts(schema, client))
    except SchemaError:  # fastavro may still accept it
        return None
    return parsed if is_recursive(parsed) else None


class _Texts(AbstractSchemaRepository):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def load(self, name: str) -> Any:
        text = self._texts.get(name)
        return None if text is None else json.loads(text)


def _full_name(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    name, namespace = schema.get("name", ""), schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name
