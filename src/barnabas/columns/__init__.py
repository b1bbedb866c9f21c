"""Columns of payloads to typed Arrow columns and back, without an object per record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class Decoded:
    values: pa.Array
    """As long as the payloads; null where there was none or it could not be decoded."""
    reasons: pa.StringArray | None
    """Why a payload could not be decoded, null elsewhere; None where all could."""


class Decoder(Protocol):
    @property
    def arrow_type(self) -> pa.DataType:
        """Of the values; Spark has a type for it."""
        ...

    def decode(self, payloads: pa.BinaryArray) -> Decoded: ...


class Encoder(Protocol):
    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """ValueError, naming the field, where a value does not fit the schema."""
        ...
