"""The format of a column's payloads, as a value that is sent to executors.

A format is built from the user's options. `resolved` (for reading) and `prepared` (for writing)
look up the schema in the registry, once, in the driver. The result needs the registry only for
schemas of other writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from barnabas.columns import ColumnDecoder, ColumnEncoder
from barnabas.columns.language import SchemaLanguage, SchemaSource

if TYPE_CHECKING:
    import pyarrow as pa

FormatName: TypeAlias = Literal["avro", "json", "protobuf", "string", "binary"]
FORMAT_NAMES: tuple[str, ...] = get_args(FormatName)
Framing: TypeAlias = Literal["registry", "none"]
"""Whether payloads start with the id of the schema they were written with."""


class ColumnFormatError(ValueError):
    """A format lacks a subject, schema or registry. The message says what to set."""


@dataclass(slots=True, frozen=True)
class ColumnFormat:
    name: FormatName
    subject: str | None = None
    """The subject whose latest schema is used, and under which new schemas are registered."""
    registry: Mapping[str, str] = field(default_factory=dict)
    """The configuration of the registry's client: `url` and others."""
    schema_text: str | None = None
    """The user's schema, which has priority over the subject's."""
    references: Mapping[str, str] = field(default_factory=dict)
    """The texts of references, by the names in the schema."""
    message: str | None = None
    """The message of a Protobuf file with several; by default the first."""
    framing: Framing = "registry"
    schema_id: int | None = None
    """The id that payloads are written with; set by `prepared`."""

    def resolved(self) -> ColumnFormat:
        """Returns the format with the latest schema of the subject."""
        if not self._needs_schema or self.schema_text is not None:
            return self
        from barnabas.columns import registered_schemas

        latest = registered_schemas.latest_schema(self._client_configuration(), self._subject())
        if latest is None:
            raise ColumnFormatError(
                f"Subject {self.subject!r} has no schema yet. Register one, or set the schema's "
                f"text."
            )
        return self._with_schema(latest.source)

    def prepared(self, arrow_type: pa.DataType) -> ColumnFormat:
        """Returns the format with the schema that values of this type are written with, and its id.

        That is the user's text, else the subject's latest schema, else one derived from the type.
        A schema that the registry does not have is registered.
        """
        if not self._needs_schema:
            return self
        if self.framing == "none":
            if self.schema_text is not None:
                return self
            return replace(self, schema_text=self._derived(arrow_type))
        if self.schema_id is not None:
            return self
        from barnabas.columns import registered_schemas

        configuration, subject = self._client_configuration(), self._subject()
        latest = None
        if self.schema_text is None:
            latest = registered_schemas.latest_schema(configuration, subject)
        if latest is None:
            text = self.schema_text or self._derived(arrow_type)
            latest = registered_schemas.register_schema(
                configuration, subject, self.name, SchemaSource(text, self.references)
            )
        return replace(self._with_schema(latest.source), schema_id=latest.schema_id)

    def arrow_type(self) -> pa.DataType:
        """Returns the type of the values, which Spark supports."""
        if not self._needs_schema:
            from barnabas.columns import plain

            return plain.arrow_type(self.name)
        return self._language().arrow_type(self.resolved()._source(), self.message)

    def decoder(self) -> ColumnDecoder:
        if not self._needs_schema:
            from barnabas.columns import plain

            return plain.decoder(self.name)
        schema = self.resolved()._source()
        if self.framing == "none":
            return self._language().decoder(schema, schema, self.message, framed=False)
        from barnabas.columns import registered_schemas

        return registered_schemas.FramedDecoder(
            self._language(), schema, self.message, self._client_configuration(), self.subject
        )

    def encoder(self, arrow_type: pa.DataType) -> ColumnEncoder:
        """Raises SchemaError if values of this type cannot be written with the schema."""
        if not self._needs_schema:
            from barnabas.columns import plain

            return plain.encoder(self.name, arrow_type)
        ready = self.prepared(arrow_type)
        return self._language().encoder(
            ready._source(), arrow_type, ready.message, schema_id=ready.schema_id
        )

    @property
    def _needs_schema(self) -> bool:
        return self.name not in ("string", "binary")

    def _language(self) -> SchemaLanguage:
        return cast("SchemaLanguage", import_module(f"barnabas.columns.{_PACKAGES[self.name]}"))

    def _derived(self, arrow_type: pa.DataType) -> str:
        name = (self.subject or "value").removesuffix("-value").removesuffix("-key")
        return self._language().derive(arrow_type, name)

    def _source(self) -> SchemaSource:
        assert self.schema_text is not None
        return SchemaSource(self.schema_text, self.references)

    def _with_schema(self, source: SchemaSource) -> ColumnFormat:
        return replace(self, schema_text=source.text, references=source.references)

    def _subject(self) -> str:
        if self.subject is None:
            raise ColumnFormatError(f"Format {self.name!r} needs a subject, or the schema's text.")
        return self.subject

    def _client_configuration(self) -> Mapping[str, str]:
        if not self.registry.get("url"):
            raise ColumnFormatError(
                f"Format {self.name!r} needs the registry's address (schema.registry.url), or a "
                f"schema's text and payloads without ids."
            )
        return self.registry


_PACKAGES = {"avro": "avro", "json": "json_text", "protobuf": "protobuf"}
