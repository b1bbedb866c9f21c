"""What a schema language gives so that its payloads become columns; each has a module that does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from barnabas.columns import Decoder, Encoder

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class SchemaSource:
    text: str
    references: Mapping[str, str] = field(default_factory=dict)
    """The texts it refers to by the names that are used, each after those that it refers to."""


class Language(Protocol):
    """The functions of such a module. `message` says which, where a schema has several."""

    def arrow_type(self, schema: SchemaSource, message: str | None) -> pa.DataType:
        """Of values read with the schema, as Spark would have it."""
        ...

    def decoder(
        self, written: SchemaSource, wanted: SchemaSource, message: str | None, *, framed: bool
    ) -> Decoder:
        """Of what was written with one schema to columns of the other.

        Framed payloads begin with a `registry.framing.header`, which was looked at and is stepped
        over, and with whatever else the language puts before a value.
        """
        ...

    def encoder(
        self,
        schema: SchemaSource,
        arrow_type: pa.DataType,
        message: str | None,
        *,
        schema_id: int | None,
    ) -> Encoder:
        """Frames payloads with the id unless that is None."""
        ...

    def derive(self, arrow_type: pa.DataType, name: str) -> str:
        """The text of a schema that can hold all values of the type."""
        ...
