"""The formats that keys and values are decoded with, from the options."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.client.lru_cache import LruCache
from barnabas.columns.format import ColumnFormat
from barnabas.spark.formats import requested_format
from barnabas.spark.options_parser import REGISTRY_PREFIX, OptionError, ParsedOptions
from barnabas.spark.source.options import topic_selection

if TYPE_CHECKING:
    from barnabas.columns import ColumnDecoder

MAX_CACHED_DECODERS = 32
"""The number of decoders that a process caches for later tasks."""


class CorruptRecordMode(Enum):
    """What happens with a record that cannot be decoded (the option `mode`)."""

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


@dataclass(slots=True, frozen=True)
class ColumnFormats:
    """The formats of key and value; None if the column stays binary."""

    key: ColumnFormat | None
    value: ColumnFormat | None
    mode: CorruptRecordMode
    corrupt_column: str

    @property
    def has_corrupt_column(self) -> bool:
        return self.mode is CorruptRecordMode.PERMISSIVE and bool(self.key or self.value)


def formats_from_options(options: ParsedOptions) -> ColumnFormats:
    """Returns the formats, with the current schemas of the registry."""
    mode = CorruptRecordMode(
        options.choice("mode", tuple(mode.value for mode in CorruptRecordMode))
    )
    corrupt_column = options.text("columnNameOfCorruptRecord") or "_corrupt_record"
    return ColumnFormats(_format(options, "key"), _format(options, "value"), mode, corrupt_column)


def _format(options: ParsedOptions, column: str) -> ColumnFormat | None:
    format_ = requested_format(options, column)
    if format_ is None or format_.name == "binary":
        return None
    if format_.name != "string" and format_.schema_text is None:
        format_ = replace(format_, subject=_subject(options, column))
    return format_.resolved()


def _subject(options: ParsedOptions, column: str) -> str:
    """Returns the option's subject, or else the subject of the only topic."""
    subject = options.text(f"{column}Subject")
    if subject is not None:
        return subject
    if options.text(f"{REGISTRY_PREFIX}url") is None:
        raise OptionError(
            f"{column}Format needs {REGISTRY_PREFIX}url, to get the schema from the registry, or"
            f" a {column}Schema for payloads without a schema id."
        )
    topic = topic_selection(options).only
    if topic is None:
        raise OptionError(f"{column}Format needs a {column}Subject if several topics are read.")
    return f"{topic}-{column}"


_decoders: LruCache[bytes, ColumnDecoder] = LruCache(MAX_CACHED_DECODERS)


def decoder(format_: ColumnFormat) -> ColumnDecoder:
    """Returns this process's decoder: to create one takes longer than to decode a small batch."""
    return _decoders.get_or_create(pickle.dumps(format_), format_.decoder)
