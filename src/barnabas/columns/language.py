"""The interface of a schema language (Avro, JSON Schema, Protobuf): a package implements each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from barnabas.columns import ColumnDecoder, ColumnEncoder

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class SchemaSource:
    text: str
    references: Mapping[str, str] = field(default_factory=dict)
    """The texts of references by name, each after the texts that it refers to itself."""


class SchemaLanguage(Protocol):
    """The functions of such a package. `message` selects one of a schema with several messages."""

    def arrow_type(self, schema: SchemaSource, message: str | None) -> pa.DataType:
        """Returns the type of values read with the schema, which Spark supports."""
        ...

    def decoder(
        self,
        writer_schema: SchemaSource,
        reader_schema: SchemaSource,
        message: str | None,
        *,
        framed: bool,
    ) -> ColumnDecoder:
        """Returns a decoder of payloads of the writer's schema to columns of the reader's.

        Framed payloads start with a schema id (`schemas.framing`), which the decoder skips, and
        with anything else that the language has before a value.
        """
        ...

    def encoder(
        self,
        schema: SchemaSource,
        arrow_type: pa.DataType,
        message: str | None,
        *,
        schema_id: int | None,
    ) -> ColumnEncoder:
        """Returns an encoder, which puts the id before payloads unless it is None."""
        ...

    def derive(self, arrow_type: pa.DataType, name: str) -> str:
        """Returns the text of a schema that fits all values of the type."""
        ...
