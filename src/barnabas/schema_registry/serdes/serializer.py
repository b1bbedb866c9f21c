"""The base class of serializers: finds the schema to write with, and frames payloads.

The registry is asked once for each subject. After that, a record costs little more than its
encoding.
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

_MAX_SUBJECTS = 1000


@dataclass(slots=True, frozen=True)
class SubjectEncoding:
    """How records of one subject are encoded."""

    schema_id: SchemaId
    prefix: bytes | None
    """The prefix of every payload, if the frame is no more than that."""
    schema: Any
    """The schema in the form of the format's library."""


class RegistrySerializer(RegistrySerde, Serializer):
    """Base class of the serializers of formats."""

    schema_type: str
    fmt: str | None = None
    """The `format` parameter of requests for schemas."""

    def __init__(self, client: Any, conf: Mapping[str, Any] | None) -> None:
        self._registry = client
        settings = SerdeConf(conf)
        self._auto_register = settings.flag("auto.register.schemas", True)
        self._normalize = settings.flag("normalize.schemas", False)
        self._selection = SchemaSelection.take(settings, by_id=True)
        if self._selection.latest and self._auto_register:
            raise ValueError(
                "use.latest.version and auto.register.schemas cannot both be True: "
                "set auto.register.schemas to False to write with the registry's schema"
            )
        self._naming = settings.subject_naming(client)
        self._frame: Callable[..., Any] = settings.function(
            "schema.id.serializer", prefix_schema_id_serializer
        )
        self._configure(settings)
        settings.reject_unknown()
        self._encodings: dict[tuple[str, int | None], SubjectEncoding] = {}
        self._lock = Lock()

    # -- methods of formats

    def _configure(self, settings: SerdeConf) -> None:
        """Takes the settings of the format."""

    def _record_name(self, obj: Any) -> str | None:
        """Returns the record name, for subject name strategies."""
        raise NotImplementedError

    def _own_schema(self, ctx: SerializationContext | None) -> Any:
        """Returns the schema that the serializer was created with, or None."""
        raise NotImplementedError

    def _parse(self, schema: Any) -> Any:
        raise NotImplementedError

    def _encode(
        self, obj: Any, encoding: SubjectEncoding, ctx: SerializationContext | None
    ) -> bytes:
        raise NotImplementedError

    def _message_indexes(self) -> tuple[int, ...] | None:
        return None

    # -- common to all formats

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        if obj is None:
            return None
        subject = self._naming.name(ctx, self._record_name(obj))
        if subject is None:
            raise SerializationError(
                "the subject name strategy gives no subject: the schema has no name"
            )
        encoding = self._encoding(subject, ctx)
        try:
            payload = self._encode(obj, encoding, ctx)
        except Exception as problem:
            problem.add_note(f"while serializing for subject {subject}")
            raise
        if encoding.prefix is not None:
            return encoding.prefix + payload
        framed: bytes = self._frame(payload, ctx, encoding.schema_id)
        return framed

    def _encoding(self, subject: str, ctx: SerializationContext | None) -> SubjectEncoding:
        selected = None
        if self._selection.is_configured:
            selected = self._selection.fetch(self._registry, subject, self.fmt)
        key = subject, None if selected is None else selected.schema_id
        encoding = self._encodings.get(key)
        if encoding is not None:
            return encoding
        with self._lock:  # threads must not register a schema twice
            encoding = self._encodings.get(key)
            if encoding is None:
                if len(self._encodings) >= _MAX_SUBJECTS:
                    self._encodings.clear()
                encoding = self._encodings[key] = self._create_encoding(subject, selected, ctx)
        return encoding

    def _create_encoding(
        self, subject: str, selected: Any, ctx: SerializationContext | None
    ) -> SubjectEncoding:
        if selected is not None:
            reject_rules(selected.schema, ("WRITE", "WRITEREAD"), subject)
            schema, registered = selected.schema, selected
        else:
            schema = self._own_schema(ctx)
            if schema is None:
                raise SerializationError(
                    f"no schema to write {subject} with: give one, or set use.latest.version"
                )
            request = (
                self._registry.register_schema_full_response
                if self._auto_register
                else self._registry.lookup_schema
            )
            registered = request(subject, schema, normalize_schemas=self._normalize)
        schema_id = SchemaId(
            self.schema_type, registered.schema_id, registered.guid, self._message_indexes()
        )
        prefixed = self._frame is prefix_schema_id_serializer
        return SubjectEncoding(
            schema_id, schema_id.id_to_bytes() if prefixed else None, self._parse(schema)
        )
