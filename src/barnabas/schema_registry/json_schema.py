"""The JSON serializer and deserializer: documents are validated by jsonschema."""

import json
from collections.abc import Callable, Mapping
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
from barnabas.schemas import extra_required_by
from barnabas.serialization import SerializationContext, SerializationError

with extra_required_by(__name__):
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY
    from referencing import Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7


class JSONSerializer(RegistrySerializer):
    """Serializes a dict, or an object that `to_dict` converts, as framed JSON.

    Raises SerializationError if the document is not valid, unless `validate` is False.
    """

    schema_type = "JSON"

    def __init__(
        self,
        schema_str: str | Schema | None,
        schema_registry_client: Any,
        to_dict: Callable[[Any, SerializationContext], Any] | None = None,
        conf: Mapping[str, Any] | None = None,
        *,
        json_encode: Callable[[Any], str | bytes] | None = None,
    ) -> None:
        if to_dict is not None and not callable(to_dict):
            raise ValueError("to_dict must be callable: to_dict(object, SerializationContext)")
        super().__init__(schema_registry_client, conf)
        self._to_dict: Callable[[Any, Any], Any] | None = to_dict
        self._json_encode = json_encode or _compact
        self._schema = as_schema(schema_str, self.schema_type)
        self._title = None
        if self._schema is not None:
            self._title = title(self._parse(self._schema))

    def _configure(self, settings: SerdeConf) -> None:
        self._validate = settings.flag("validate", True)

    def _record_name(self, obj: Any) -> str | None:
        return self._title

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        return self._schema

    def _parse(self, schema: Any) -> Any:
        return build_validator(schema, self._registry)

    def _encode(
        self, obj: Any, encoding: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        if self._to_dict is not None:
            obj = self._to_dict(obj, ctx)
        if self._validate:
            require_valid_document(obj, encoding.schema)
        encoded = self._json_encode(obj)
        return encoded.encode() if isinstance(encoded, str) else encoded


class JSONDeserializer(RegistryDeserializer):
    """Deserializes framed JSON to a dict, or to an object that `from_dict` makes of it.

    Raises SerializationError if the document is not valid, unless `validate` is False. Without a
    client, it validates with the schema that it was created with.
    """

    schema_type = "JSON"

    def __init__(
        self,
        schema_str: str | Schema | None,
        from_dict: Callable[[Any, SerializationContext], Any] | None = None,
        schema_registry_client: Any = None,
        conf: Mapping[str, Any] | None = None,
        *,
        json_decode: Callable[[bytes], Any] | None = None,
    ) -> None:
        schema = as_schema(schema_str, self.schema_type)
        if schema_registry_client is None and (schema is None or schema.references):
            raise ValueError(
                "schema_registry_client is missing: without a schema, or with one that refers to "
                "others, the registry is needed"
            )
        if from_dict is not None and not callable(from_dict):
            raise ValueError("from_dict must be callable: from_dict(dict, SerializationContext)")
        self._from_dict: Callable[[Any, Any], Any] | None = from_dict
        self._json_decode = json_decode or json.loads
        super().__init__(schema_registry_client, schema, conf)

    def _configure(self, settings: SerdeConf) -> None:
        self._validate = settings.flag("validate", True)

    def _parse(self, schema: Any) -> Any:
        return build_validator(schema, self._registry)

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        return title(parsed)

    def _decode(
        self, frame: Frame, schemas: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        try:
            value = self._json_decode(frame.payload)
        except (ValueError, RecursionError) as problem:
            raise SerializationError(f"{describe_payload(ctx)} is not JSON: {problem}") from problem
        if self._validate:
            require_valid_document(value, schemas.reader_schema or schemas.writer_schema)
        return value if self._from_dict is None else self._from_dict(value, ctx)


class JSONSerializerBuilder(DictSerializerBuilder):
    kind: ClassVar[type] = JSONSerializer
    _names = ("schema", "to_dict", "serializer_config", "json_encode")

    def set_json_encode(self, json_encode: Callable[..., Any]) -> Self:
        return self._set("json_encode", json_encode)


class JSONDeserializerBuilder(DictDeserializerBuilder):
    kind: ClassVar[type] = JSONDeserializer
    _names = ("schema", "from_dict", "deserializer_config", "json_decode")

    def set_json_decode(self, json_decode: Callable[..., Any]) -> Self:
        return self._set("json_decode", json_decode)


class AsyncJSONSerializer(AsyncSerializer):
    kind = JSONSerializer


class AsyncJSONDeserializer(AsyncDeserializer):
    kind = JSONDeserializer


class AsyncJSONSerializerBuilder(AsyncSerdeBuilder, JSONSerializerBuilder):
    kind = AsyncJSONSerializer


class AsyncJSONDeserializerBuilder(AsyncSerdeBuilder, JSONDeserializerBuilder):
    kind = AsyncJSONDeserializer


def build_validator(schema: Any, client: Any) -> Any:
    """Returns a validator for the schema and its references."""
    registry = REGISTRY
    for name, text in fetch_referenced_texts(schema, client).items():
        resource = Resource.from_contents(json.loads(text), default_specification=DRAFT7)
        registry = registry.with_resource(name, resource)
    document = json.loads(schema.schema_str)
    kind = validator_for(document)
    kind.check_schema(document)
    return kind(document, registry=registry)


def title(validator: Any) -> str | None:
    document = validator.schema
    return document.get("title") if isinstance(document, dict) else None


def require_valid_document(document: Any, validator: Any) -> None:
    """Raises SerializationError, with the path, if the document is not valid."""
    try:
        problem = best_match(validator.iter_errors(document))
    except Unresolvable as missing:
        raise SerializationError(
            f"the JSON schema refers to {missing.ref}, which is not among its references"
        ) from missing
    except RecursionError as deep:
        raise SerializationError("the document is nested too deep to be checked") from deep
    if problem is not None:
        raise SerializationError(f"{problem.json_path}: {problem.message}")


def _compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
