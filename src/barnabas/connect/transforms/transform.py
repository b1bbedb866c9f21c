"""What a transform and a predicate do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.converters.converter import RowError
from barnabas.connect.data.batch import ConnectBatch

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class Transformed:
    """What became of a batch: one or several batches, and the rows that failed.

    Rows keep their order within and across batches. Dropped and failed rows are in none of them.
    """

    batches: Sequence[tuple[ConnectBatch, pa.Array]]
    """Each with the indices of its rows in the batch that was passed (int64)."""
    errors: Sequence[RowError] = field(default=())


class Transform(ABC):
    """Changes records. It is created once in each process, and then configured."""

    version: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef: ...

    def configure(self, settings: Mapping[str, str]) -> None:
        """Takes the settings without the prefix `transforms.ALIAS.`."""
        self.settings: Mapping[str, Any] = self.config_def().parse(settings)

    @abstractmethod
    def apply(self, batch: ConnectBatch) -> Transformed:
        """Raises DataError if the settings do not fit the whole batch: all its rows fail then."""


class Predicate(ABC):
    """Decides which records a transform is applied to."""

    version: ClassVar[str | None] = None

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef: ...

    def configure(self, settings: Mapping[str, str]) -> None:
        self.settings: Mapping[str, Any] = self.config_def().parse(settings)

    @abstractmethod
    def test(self, batch: ConnectBatch) -> pa.BooleanArray:
        """Returns a value for each row, none of them null."""
