"""Formats of typed columns, settled with the registry once a process."""

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

MOST_FORMATS = 64

_prepared: LruCache[tuple[bytes, pa.DataType], ColumnFormat] = LruCache(MOST_FORMATS)


def column_format(column: str, options: SinkOptions, arrow_type: pa.DataType) -> ColumnFormat:
    """How the key or the value is encoded; a schema that the registry lacks is registered.

    OptionError where the options do not say enough, or values of this type cannot be written.
    """
    asked = options.key if column == "key" else options.value
    assert asked is not None, "a column is typed by its format"
    if asked.subject is None and options.topic is not None:
        asked = replace(asked, subject=f"{options.topic}-{column}")
    try:
        return _prepared.get_or_create(
            (pickle.dumps(asked), arrow_type), lambda: asked.prepared(arrow_type)
        )
    except ValueError as problem:
        raise OptionError(f"{column}Format {asked.name}: {problem}") from problem
