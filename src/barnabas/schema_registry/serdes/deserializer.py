"""What the deserializers of all formats have in common: the schemas of what was written.

The registry is asked once for each schema that turns up.
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

_MOST_SCHEMAS = 1000


@dataclass(slots=True, frozen=True)
class DeserializerSchemas:
    """How what one schema wrote is read."""

    writer_schema: Any
    """The writer's schema, as the format wants it; None where no registry was asked."""
    reader_schema: Any
    """The reader's schema; None where it is the writer's."""


class RegistryDeserializer(RegistrySerde, Deserializer):
    """To be derived from by a format's deserializer."""

    schema_type: str
    fmt: str | None = None

    def __init__(self, client: Any, schema: Any, conf: Mapping[str, Any] | None) -> None:
        self._registry = client
        left = SerdeConf(conf)
        self._choice = SchemaSelection.take(left, by_id=False)
        self._naming = left.subject_naming(client)
        self._unframe: Callable[..., Any] = left.function(
            "schema.id.deserializer", dual_schema_id_deserializer
        )
        self._configure(left)
        left.reject_unknown()
        self._schema = schema
        self._own = None if schema is None else self._parsed(schema)
        self._readers: dict[tuple[str | None, int | UUID], DeserializerSchemas] = {}
        self._parses: SubjectCache[Any] = SubjectCache(_MOST_SCHEMAS)

    # -- what a format adds

    def _configure(self, left: SerdeConf) -> None:
        """Take its own settings."""

    def _parsed(self, schema: Any) -> Any:
        raise NotImplementedError

    def _name(self, parsed: Any, frame: Frame) -> str | None:
        """What a strategy may name the subject after."""
        return None

    def _decoded(
        self, frame: Frame, reader: DeserializerSchemas, ctx: SerializationContext | None
    ) -> Any:
        raise NotImplementedError

    # -- what they share

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        if value is None:
            return None
        frame = self.unframe(value, ctx)
        subject = None if ctx is None else self._naming.name(ctx, None)
        reader = self._readers.get((subject, frame.schema))
        if reader is None:
            reader = self._made_reader(subject, frame, ctx)
        return self._decoded(frame, reader, ctx)

    def unframe(self, value: bytes, ctx: SerializationContext | None) -> Frame:
        """Which schema the bytes were written with, and what they are without saying so."""
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

    def _made_reader(
        self, subject: str | None, frame: Frame, ctx: SerializationContext | None
    ) -> DeserializerSchemas:
        if self._registry is None:
            return DeserializerSchemas(None, self._own)
        written = self._written(frame.schema, subject)
        parsed = self._remembered(written)
        follows_latest = self._choice.is_configured and ctx is not None
        if not follows_latest:
            reject_rules(self._schema or written, ("READ", "WRITEREAD"), subject)
            if len(self._readers) >= _MOST_SCHEMAS:
                self._readers.clear()
            reader = self._readers[subject, frame.schema] = DeserializerSchemas(parsed, self._own)
            return reader
        name = subject or self._naming.name(ctx, self._name(parsed, frame))
        if name is None:
            return DeserializerSchemas(parsed, self._own)
        latest = self._choice.fetch(self._registry, name, self.fmt).schema
        modes = ("READ", "WRITEREAD", "UPGRADE", "DOWNGRADE", "UPDOWN")
        reject_rules(latest, modes, name)
        return DeserializerSchemas(parsed, self._remembered(latest))

    def _written(self, schema: int | UUID, subject: str | None) -> Any:
        if isinstance(schema, UUID):
            return self._registry.get_schema_by_guid(str(schema), self.fmt)
        return self._registry.get_schema(schema, subject, self.fmt)

    def _remembered(self, schema: Any) -> Any:
        parsed = self._parses.get(schema)
        return self._parses.put(self._parsed(schema), schema) if parsed is None else parsed


def describe_payload(ctx: SerializationContext | None) -> str:
    """What an error calls the bytes: `the value of orders`."""
    return "the value" if ctx is None else f"the {ctx.field} of {ctx.topic}"
