"""The base class of deserializers: finds the schemas to read payloads with.

Each schema is requested from the registry once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from barnabas.schema_registry.client.cache import SubjectCache
from barnabas.schema_registry.serdes.framing import (
    Frame,
    SchemaId,
    dual_schema_id_deserializer,
    frame_from_header,
    prefix_schema_id_deserializer,
    read_frame,
)
from barnabas.schema_registry.serdes.serde import (
    RegistrySerde,
    SchemaSelection,
    SerdeConf,
    reject_rules,
)
from barnabas.serialization import Deserializer, SerializationContext, SerializationError

_MAX_SCHEMAS = 1000


@dataclass(slots=True, frozen=True)
class DeserializerSchemas:
    """The schemas to read data of one writer's schema with."""

    writer_schema: Any
    """The writer's schema in the form of the format's library; None without a registry."""
    reader_schema: Any
    """The reader's schema; None if it is the writer's."""


class RegistryDeserializer(RegistrySerde, Deserializer):
    """Base class of the deserializers of formats."""

    schema_type: str
    fmt: str | None = None

    def __init__(self, client: Any, schema: Any, conf: Mapping[str, Any] | None) -> None:
        self._registry = client
        settings = SerdeConf(conf)
        self._selection = SchemaSelection.take(settings, by_id=False)
        self._naming = settings.subject_naming(client)
        self._unframe: Callable[..., Any] = settings.function(
            "schema.id.deserializer", dual_schema_id_deserializer
        )
        self._configure(settings)
        settings.reject_unknown()
        self._schema = schema
        self._own = None if schema is None else self._parse(schema)
        self._schemas_by_id: dict[tuple[str | None, int | UUID], DeserializerSchemas] = {}
        self._parses: SubjectCache[Any] = SubjectCache(_MAX_SCHEMAS)

    # -- methods of formats

    def _configure(self, settings: SerdeConf) -> None:
        """Takes the settings of the format."""

    def _parse(self, schema: Any) -> Any:
        raise NotImplementedError

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        """Returns the record name, for subject name strategies."""
        return None

    def _decode(
        self, frame: Frame, schemas: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        raise NotImplementedError

    # -- common to all formats

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        if value is None:
            return None
        frame = self.unframe(value, ctx)
        subject = None if ctx is None else self._naming.name(ctx, None)
        schemas = self._schemas_by_id.get((subject, frame.schema))
        if schemas is None:
            schemas = self._create_schemas(subject, frame, ctx)
        return self._decode(frame, schemas, ctx)

    def unframe(self, value: bytes, ctx: SerializationContext | None) -> Frame:
        """Splits the bytes into the id of their schema and the payload."""
        with_indexes = self.schema_type == "PROTOBUF"
        if self._unframe is dual_schema_id_deserializer:
            frame = frame_from_header(value, ctx, with_indexes)
            return read_frame(value, with_indexes) if frame is None else frame
        if self._unframe is prefix_schema_id_deserializer:
            return read_frame(value, with_indexes)
        schema_id = SchemaId(self.schema_type)
        payload = self._unframe(value, ctx, schema_id).read()
        schema = schema_id.guid if schema_id.id is None else schema_id.id
        if schema is None:
            raise SerializationError("schema.id.deserializer found neither an id nor a guid")
        indexes = schema_id.message_indexes
        return Frame(schema, None if indexes is None else tuple(indexes), payload)

    def _create_schemas(
        self, subject: str | None, frame: Frame, ctx: SerializationContext | None
    ) -> DeserializerSchemas:
        if self._registry is None:
            return DeserializerSchemas(None, self._own)
        writer_schema = self._fetch_schema(frame.schema, subject)
        parsed = self._parse_cached(writer_schema)
        follows_latest = self._selection.is_configured and ctx is not None
        if not follows_latest:
            reject_rules(self._schema or writer_schema, ("READ", "WRITEREAD"), subject)
            if len(self._schemas_by_id) >= _MAX_SCHEMAS:
                self._schemas_by_id.clear()
            schemas = self._schemas_by_id[subject, frame.schema] = DeserializerSchemas(
                parsed, self._own
            )
            return schemas
        name = subject or self._naming.name(ctx, self._name(parsed, frame))
        if name is None:
            return DeserializerSchemas(parsed, self._own)
        latest = self._selection.fetch(self._registry, name, self.fmt).schema
        modes = ("READ", "WRITEREAD", "UPGRADE", "DOWNGRADE", "UPDOWN")
        reject_rules(latest, modes, name)
        return DeserializerSchemas(parsed, self._parse_cached(latest))

    def _fetch_schema(self, schema: int | UUID, subject: str | None) -> Any:
        if isinstance(schema, UUID):
            return self._registry.get_schema_by_guid(str(schema), self.fmt)
        return self._registry.get_schema(schema, subject, self.fmt)

    def _parse_cached(self, schema: Any) -> Any:
        parsed = self._parses.get(schema)
        return self._parses.put(self._parse(schema), schema) if parsed is None else parsed


def describe_payload(ctx: SerializationContext | None) -> str:
    """Returns a description of the bytes for error messages: `the value of orders`."""
    return "the value" if ctx is None else f"the {ctx.field} of {ctx.topic}"
