"""How the bytes of a column are to be read and written, as a value that travels to executors.

A format is made from a user's options. `resolved` (for reading) and `prepared` (for writing)
settle with the registry, once, in the driver, which schema is meant; what they return needs the
registry only for the schemas that others wrote with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from barnabas.columns import Decoder, Encoder
from barnabas.columns.language import Language, SchemaSource

if TYPE_CHECKING:
    import pyarrow as pa

FormatName: TypeAlias = Literal["avro", "json", "protobuf", "string", "binary"]
FORMAT_NAMES: tuple[str, ...] = get_args(FormatName)
Framing: TypeAlias = Literal["registry", "none"]
"""Payloads begin with the id of the schema they were written with, or with themselves."""


class FormatError(ValueError):
    """A format that cannot be had as it is described; says what to give."""


@dataclass(slots=True, frozen=True)
class ColumnFormat:
    name: FormatName
    subject: str | None = None
    """Whose latest schema gives the columns, and under which new schemas are registered."""
    registry: Mapping[str, str] = field(default_factory=dict)
    """The configuration of a client: `url` and what goes with it."""
    schema_text: str | None = None
    """Given by the user, it stands before the subject's."""
    references: Mapping[str, str] = field(default_factory=dict)
    """The texts that the schema refers to, by the names it uses."""
    message: str | None = None
    """Which one, where a Protobuf file has several; the first unless it is said."""
    framing: Framing = "registry"
    schema_id: int | None = None
    """Which `prepared` found or registered: payloads are written with it."""

    def resolved(self) -> ColumnFormat:
        """The same, with the schema that the registry has as the subject's latest."""
        if not self._needs_schema or self.schema_text is not None:
            return self
        from barnabas.columns import registered

        latest = registered.latest(self._client_configuration(), self._subject())
        if latest is None:
            raise FormatError(
                f"Subject {self.subject!r} has no schema yet. Register one, or give the schema's "
                f"text."
            )
        return self._with_schema(latest.source)

    def prepared(self, arrow_type: pa.DataType) -> ColumnFormat:
        """The same, with the schema that values of this type are written with, and its id.

        That is the text given, else the subject's latest schema, else one derived from the type.
        What the registry has not is registered.
        """
        if not self._needs_schema:
            return self
        if self.framing == "none":
            if self.schema_text is not None:
                return self
            return replace(self, schema_text=self._derived(arrow_type))
        if self.schema_id is not None:
            return self
        from barnabas.columns import registered

        configuration, subject = self._client_configuration(), self._subject()
        latest = None
        if self.schema_text is None:
            latest = registered.latest(configuration, subject)
        if latest is None:
            text = self.schema_text or self._derived(arrow_type)
            latest = registered.register(
                configuration, subject, self.name, SchemaSource(text, self.references)
            )
        return replace(self._with_schema(latest.source), schema_id=latest.schema_id)

    def arrow_type(self) -> pa.DataType:
        """Of the values: a type that Spark has."""
        if not self._needs_schema:
            from barnabas.columns import plain

            return plain.arrow_type(self.name)
        return self._language().arrow_type(self.resolved()._source(), self.message)

    def decoder(self) -> Decoder:
        if not self._needs_schema:
            from barnabas.columns import plain

            return plain.decoder(self.name)
        wanted = self.resolved()._source()
        if self.framing == "none":
            return self._language().decoder(wanted, wanted, self.message, framed=False)
        from barnabas.columns import registered

        return registered.FramedDecoder(
            self._language(), wanted, self.message, self._client_configuration(), self.subject
        )

    def encoder(self, arrow_type: pa.DataType) -> Encoder:
        """SchemaError where values of this type cannot be written with the schema."""
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

    def _language(self) -> Language:
        return cast("Language", import_module(f"barnabas.columns.{_HOMES[self.name]}"))

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
            raise FormatError(f"Format {self.name!r} needs a subject, or the schema's text.")
        return self.subject

    def _client_configuration(self) -> Mapping[str, str]:
        if not self.registry.get("url"):
            raise FormatError(
                f"Format {self.name!r} needs the registry's address (schema.registry.url), or a "
                f"schema's text and payloads without ids."
            )
        return self.registry


_HOMES = {"avro": "avro", "json": "json_text", "protobuf": "protobuf"}
