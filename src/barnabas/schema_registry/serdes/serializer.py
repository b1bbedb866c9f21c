"""What the serializers of all formats have in common: the schema to write with, and the frame.

The registry is asked once for each subject; after that a record costs its encoding and little more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from barnabas.schema_registry.serdes.framing import SchemaId, prefix_schema_id_serializer
from barnabas.schema_registry.serdes.serde import (
    RegistrySerde,
    SchemaSelection,
    SerdeConf,
    reject_rules,
)
from barnabas.serialization import SerializationContext, SerializationError, Serializer

_MOST_SUBJECTS = 1000


@dataclass(slots=True, frozen=True)
class SubjectEncoding:
    """How records of one subject are written."""

    schema_id: SchemaId
    prefix: bytes | None
    """What goes before each payload, where that is all of the frame."""
    schema: Any
    """As the format wants it for encoding."""


class RegistrySerializer(RegistrySerde, Serializer):
    """To be derived from by a format's serializer."""

    schema_type: str
    fmt: str | None = None
    """In which form the format wants the registry's schemas."""

    def __init__(self, client: Any, conf: Mapping[str, Any] | None) -> None:
        self._registry = client
        left = SerdeConf(conf)
        self._auto_register = left.flag("auto.register.schemas", True)
        self._normalize = left.flag("normalize.schemas", False)
        self._choice = SchemaSelection.take(left, by_id=True)
        if self._choice.latest and self._auto_register:
            raise ValueError(
                "use.latest.version and auto.register.schemas cannot both be True: "
                "set auto.register.schemas to False to write with the registry's schema"
            )
        self._naming = left.subject_naming(client)
        self._frame: Callable[..., Any] = left.function(
            "schema.id.serializer", prefix_schema_id_serializer
        )
        self._configure(left)
        left.reject_unknown()
        self._writers: dict[tuple[str, int | None], SubjectEncoding] = {}
        self._lock = Lock()

    # -- what a format adds

    def _configure(self, left: SerdeConf) -> None:
        """Take its own settings."""

    def _record_name(self, obj: Any) -> str | None:
        """What a strategy may name the subject after."""
        raise NotImplementedError

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        """The schema it was made with; None if it was made without."""
        raise NotImplementedError

    def _parsed(self, schema: Any) -> Any:
        raise NotImplementedError

    def _encoded(
        self, obj: Any, writer: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        raise NotImplementedError

    def _message_indexes(self) -> tuple[int, ...] | None:
        return None

    # -- what they share

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        if obj is None:
            return None
        subject = self._naming.name(ctx, self._record_name(obj))
        if subject is None:
            raise SerializationError(
                "the subject name strategy gives no subject: the schema has no name"
            )
        writer = self._writer(subject, ctx)
        try:
            payload = self._encoded(obj, writer, ctx)
        except Exception as problem:
            problem.add_note(f"while serializing for subject {subject}")
            raise
        if writer.prefix is not None:
            return writer.prefix + payload
        framed: bytes = self._frame(payload, ctx, writer.schema_id)
        return framed

    def _writer(self, subject: str, ctx: SerializationContext | None) -> SubjectEncoding:
        chosen = None
        if self._choice.is_configured:
            chosen = self._choice.fetch(self._registry, subject, self.fmt)
        key = subject, None if chosen is None else chosen.schema_id
        writer = self._writers.get(key)
        if writer is not None:
            return writer
        with self._lock:  # so that several threads register a schema once
            writer = self._writers.get(key)
            if writer is None:
                if len(self._writers) >= _MOST_SUBJECTS:
                    self._writers.clear()
                writer = self._writers[key] = self._made_writer(subject, chosen, ctx)
        return writer

    def _made_writer(
        self, subject: str, chosen: Any, ctx: SerializationContext | None
    ) -> SubjectEncoding:
        if chosen is not None:
            reject_rules(chosen.schema, ("WRITE", "WRITEREAD"), subject)
            schema, registered = chosen.schema, chosen
        else:
            schema = self._own_schema(ctx)
            if schema is None:
                raise SerializationError(
                    f"no schema to write {subject} with: give one, or set use.latest.version"
                )
            ask = (
                self._registry.register_schema_full_response
                if self._auto_register
                else self._registry.lookup_schema
            )
            registered = ask(subject, schema, normalize_schemas=self._normalize)
        schema_id = SchemaId(
            self.schema_type, registered.schema_id, registered.guid, self._message_indexes()
        )
        prefixed = self._frame is prefix_schema_id_serializer
        return SubjectEncoding(
            schema_id, schema_id.id_to_bytes() if prefixed else None, self._parsed(schema)
        )
