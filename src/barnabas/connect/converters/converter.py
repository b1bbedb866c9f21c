"""What a converter does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.data.schema import ConnectSchema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class RowError:
    """A row that could not be handled."""

    row: int
    """The index of the row in the batch that was passed."""
    error: Exception


@dataclass(slots=True, frozen=True)
class Converted:
    """Rows with one schema: a contiguous run of the payloads."""

    start: int
    """The index of the first row."""
    schema: ConnectSchema | None
    values: pa.Array
    """One for each row of the run; null for rows that failed."""


@dataclass(slots=True, frozen=True)
class Conversion:
    """The runs of all payloads, in order, and the rows that failed."""

    runs: Sequence[Converted]
    errors: Sequence[RowError] = field(default=())


@dataclass(slots=True, frozen=True)
class ConvertedBytes:
    """The payloads of a batch; null where the value was null or failed."""

    payloads: pa.Array
    """binary"""
    errors: Sequence[RowError] = field(default=())


class Converter(ABC):
    """Converts keys or values. It is created once in each process, and then configured."""

    version: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Returns the settings, without the prefix `key.converter.` or `value.converter.`."""

    @abstractmethod
    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        """Takes the settings without prefix."""

    @abstractmethod
    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        """Decodes the keys or values of records of a topic."""

    @abstractmethod
    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        """Encodes keys or values. Raises DataError if none of them can be encoded."""
