"""The Avro serializer and deserializer: records are dicts, encoded by fastavro."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from barnabas.schema_registry.client.client import fetch_referenced_texts
from barnabas.schema_registry.client.models import Schema
from barnabas.schema_registry.serdes.aio import AsyncDeserializer, AsyncSerializer
from barnabas.schema_registry.serdes.builders import (
    AsyncSerdeBuilder,
    DictDeserializerBuilder,
    DictSerializerBuilder,
)
from barnabas.schema_registry.serdes.deserializer import (
    DeserializerSchemas,
    RegistryDeserializer,
    describe_payload,
)
from barnabas.schema_registry.serdes.framing import Frame
from barnabas.schema_registry.serdes.serde import SerdeConf, as_schema
from barnabas.schema_registry.serdes.serializer import RegistrySerializer, SubjectEncoding
from barnabas.schemas import SchemaError, extra_required_by
from barnabas.schemas.avro._nesting import find_nesting_fault, is_recursive
from barnabas.schemas.avro.model import AvroType
from barnabas.schemas.avro.parser import parse_stored_schema
from barnabas.serialization import SerializationContext, SerializationError

with extra_required_by(__name__):
    from fastavro import schemaless_reader, schemaless_writer
    from fastavro.repository.base import AbstractSchemaRepository, SchemaRepositoryError
    from fastavro.schema import load_schema

_ROOT = "$root"


class AvroSerializer(RegistrySerializer):
    """Serializes a dict, or an object that `to_dict` converts, as framed Avro.

    Raises ValueError or TypeError if it does not match the schema.
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
        self._to_dict: Callable[[Any, Any], Any] | None = to_dict
        self._schema = as_schema(wrap_schema_text(schema_str), self.schema_type)
        self._name = None
        if self._schema is not None:
            self._name = record_name(self._parse(self._schema))

    def _configure(self, settings: SerdeConf) -> None:
        self._strict = settings.flag("validate.strict", False)
        self._strict_allow_default = settings.flag("validate.strict.allow.default", False)

    def _record_name(self, obj: Any) -> str | None:
        return self._name

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        return self._schema

    def _parse(self, schema: Any) -> Any:
        return parse_for_fastavro(schema, self._registry)

    def _encode(
        self, obj: Any, encoding: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        if self._to_dict is not None:
            obj = self._to_dict(obj, ctx)
        if is_plain_bytes(encoding.schema):
            return obj.encode() if isinstance(obj, str) else bytes(obj)
        output = io.BytesIO()
        schemaless_writer(
            output,
            encoding.schema,
            obj,
            strict=self._strict,
            strict_allow_default=self._strict_allow_default,
        )
        return output.getvalue()


class AvroDeserializer(RegistryDeserializer):
    """Deserializes framed Avro to a dict, or to an object that `from_dict` makes of it.

    With its own schema, or with the latest one of the subject, data of another schema is resolved
    by Avro's rules: fields are dropped or get their defaults.
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
        self._from_dict: Callable[[Any, Any], Any] | None = from_dict
        self._return_record_name = return_record_name
        schema = as_schema(wrap_schema_text(schema_str), self.schema_type)
        super().__init__(schema_registry_client, schema, conf)

    def _parse(self, schema: Any) -> Any:
        return _WriterSchema(
            parse_for_fastavro(schema, self._registry), _recursive_schema(schema, self._registry)
        )

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        return record_name(parsed.schema)

    def _decode(
        self, frame: Frame, schemas: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        if is_plain_bytes(schemas.writer_schema.schema):
            value: Any = frame.payload
        else:
            value = self._read(frame, schemas, ctx)
        return value if self._from_dict is None else self._from_dict(value, ctx)

    def _read(
        self, frame: Frame, schemas: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        try:
            schemas.writer_schema.require_shallow(frame.payload)
            return schemaless_reader(
                io.BytesIO(frame.payload),
                schemas.writer_schema.schema,
                None if schemas.reader_schema is None else schemas.reader_schema.schema,
                return_record_name=self._return_record_name,
            )
        except Exception as problem:
            raise SerializationError(
                f"{describe_payload(ctx)} is not Avro of schema {frame.schema}: "
                f"{problem or type(problem).__name__}"
            ) from problem


class AvroSerializerBuilder(DictSerializerBuilder):
    kind: ClassVar[type] = AvroSerializer
    _names = ("schema", "to_dict", "serializer_config")


class AvroDeserializerBuilder(DictDeserializerBuilder):
    kind: ClassVar[type] = AvroDeserializer
    _names = ("schema", "from_dict", "deserializer_config", "return_record_name")

    def set_return_record_name(self, return_record_name: bool) -> Self:
        return self._set("return_record_name", return_record_name)


class AsyncAvroSerializer(AsyncSerializer):
    kind = AvroSerializer


class AsyncAvroDeserializer(AsyncDeserializer):
    kind = AvroDeserializer


class AsyncAvroSerializerBuilder(AsyncSerdeBuilder, AvroSerializerBuilder):
    kind = AsyncAvroSerializer


class AsyncAvroDeserializerBuilder(AsyncSerdeBuilder, AvroDeserializerBuilder):
    kind = AsyncAvroDeserializer


@dataclass(slots=True, frozen=True)
class _WriterSchema:
    schema: Any
    """In fastavro's form."""
    recursive_schema: AvroType | None
    """Set if a record contains itself. fastavro would follow such a payload until the stack
    overflows and the process ends, so its nesting is checked first."""

    def require_shallow(self, payload: bytes) -> None:
        if self.recursive_schema is not None:
            fault = find_nesting_fault(self.recursive_schema, payload)
            if fault:
                raise ValueError(fault)


def wrap_schema_text(schema: Any) -> Any:
    """Wraps `"string"` as an object, as confluent_kafka does, so that both get the same id."""
    if not isinstance(schema, str):
        return schema
    text = schema.strip()
    return text if text.startswith(("{", "[")) else f'{{"type":{text}}}'


def parse_for_fastavro(schema: Any, client: Any) -> Any:
    """Returns a schema with its references in fastavro's form."""
    texts = fetch_referenced_texts(schema, client)
    for text in list(texts.values()):
        texts.setdefault(_full_name(json.loads(text)), text)
    texts[_ROOT] = schema.schema_str
    return load_schema(_ROOT, repo=_Texts(texts))


def record_name(parsed: Any) -> str | None:
    """Returns the name of a record, or the type of a primitive. A union has no name."""
    if not isinstance(parsed, dict):
        return None
    name: str | None = parsed.get("name", parsed.get("type"))
    return name


def is_plain_bytes(parsed: Any) -> bool:
    """Returns whether the payload is the bytes without their length, as Confluent writes them."""
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
        if text is None:
            raise SchemaRepositoryError(f"{name} is not among the references of the schema")
        return json.loads(text)


def _full_name(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    name, namespace = schema.get("name", ""), schema.get("namespace")
    return f"{namespace}.{name}" if namespace and "." not in name else name
