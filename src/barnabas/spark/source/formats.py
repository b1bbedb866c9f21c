"""How keys and values are decoded: what the options say of formats, and of what has none."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.client.lru_cache import LruCache
from barnabas.columns.format import ColumnFormat
from barnabas.spark.formats import requested_format
from barnabas.spark.options_parser import REGISTRY_PREFIX, OptionError, ParsedOptions
from barnabas.spark.source.options import topics_of

if TYPE_CHECKING:
    from barnabas.columns import Decoder

MOST_DECODERS = 32
"""That a process keeps for the tasks that follow."""


class CorruptRecordMode(Enum):
    """What becomes of a record that cannot be decoded."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


@dataclass(slots=True, frozen=True)
class ColumnFormats:
    """Of the columns that are not left as binary."""

    key: ColumnFormat | None
    value: ColumnFormat | None
    mode: CorruptRecordMode
    corrupt_column: str

    @property
    def has_corrupt_column(self) -> bool:
        return self.mode is CorruptRecordMode.PERMISSIVE and bool(self.key or self.value)


def formats_of(told: ParsedOptions) -> ColumnFormats:
    """With the schemas that the registry has now."""
    mode = CorruptRecordMode(told.choice("mode", tuple(mode.value for mode in CorruptRecordMode)))
    corrupt_column = told.text("columnNameOfCorruptRecord") or "_corrupt_record"
    return ColumnFormats(_format(told, "key"), _format(told, "value"), mode, corrupt_column)


def _format(told: ParsedOptions, column: str) -> ColumnFormat | None:
    asked = requested_format(told, column)
    if asked is None or asked.name == "binary":
        return None
    if asked.name != "string" and asked.schema_text is None:
        asked = replace(asked, subject=_subject(told, column))
    return asked.resolved()


def _subject(told: ParsedOptions, column: str) -> str:
    """That of the one topic which is read, unless it is told."""
    subject = told.text(f"{column}Subject")
    if subject is not None:
        return subject
    if told.text(f"{REGISTRY_PREFIX}url") is None:
        raise OptionError(
            f"{column}Format needs {REGISTRY_PREFIX}url, whose schema gives the columns, or a"
            f" {column}Schema for payloads that bear no schema's id."
        )
    topic = topics_of(told).only
    if topic is None:
        raise OptionError(f"{column}Format needs a {column}Subject where several topics are read.")
    return f"{topic}-{column}"


_decoders: LruCache[bytes, Decoder] = LruCache(MOST_DECODERS)


def decoder(format_: ColumnFormat) -> Decoder:
    """The process's one: making it takes longer than a small batch."""
    return _decoders.get_or_create(pickle.dumps(format_), format_.decoder)
