"""Formats of encoded columns, whose schemas each process looks up in the registry once."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.client.lru_cache import LruCache
from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.columns.format import ColumnFormat

MAX_CACHED_FORMATS = 64

_prepared: LruCache[tuple[bytes, pa.DataType], ColumnFormat] = LruCache(MAX_CACHED_FORMATS)


def column_format(column: str, options: SinkOptions, arrow_type: pa.DataType) -> ColumnFormat:
    """Returns the format of the key or value; registers its schema if the registry has none.

    Raises OptionError if options are missing, or values of this type cannot be written.
    """
    format_ = options.key if column == "key" else options.value
    assert format_ is not None, "only columns with a format are encoded"
    if format_.subject is None and options.topic is not None:
        format_ = replace(format_, subject=f"{options.topic}-{column}")
    try:
        return _prepared.get_or_create(
            (pickle.dumps(format_), arrow_type), lambda: format_.prepared(arrow_type)
        )
    except ValueError as error:
        raise OptionError(f"{column}Format {format_.name}: {error}") from error
