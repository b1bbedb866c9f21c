"""Decodes columns of payloads to typed Arrow columns, and encodes them, without record objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class DecodedColumn:
    values: pa.Array
    """One for each payload; null if there was none or it could not be decoded."""
    reasons: pa.StringArray | None
    """Why a payload could not be decoded, else null; None if all were decoded."""


class ColumnDecoder(Protocol):
    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values, which Spark supports."""
        ...

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn: ...


class ColumnEncoder(Protocol):
    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """Raises ValueError, with the field, if a value does not fit the schema."""
        ...
