"""Formats of typed columns: what options say, settled with the registry once a process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, cast

from barnabas.spark.naming import REGISTRY, OptionError
from barnabas.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.registry.columns.format import ColumnFormat, FormatName


def column_format(column: str, options: SinkOptions, arrow_type: pa.DataType) -> ColumnFormat:
    """How the key or the value is encoded; a schema that the registry lacks is registered.

    OptionError where the options do not say enough, or values of this type cannot be written.
    """
    from barnabas.registry.columns.format import FORMAT_NAMES

    asked = options.key if column == "key" else options.value
    assert asked is not None, "a column is typed by its format"
    if asked.name not in FORMAT_NAMES:
        raise OptionError(
            f"{column}Format is one of {', '.join(FORMAT_NAMES)}: not {asked.name!r}."
        )
    subject = asked.subject or (f"{options.topic}-{column}" if options.topic else None)
    registry = {name.removeprefix(REGISTRY): value for name, value in options.registry.items()}
    try:
        return _prepared(
            asked.name, subject, tuple(sorted(registry.items())), asked.schema, arrow_type
        )
    except ValueError as problem:
        raise OptionError(f"{column}Format {asked.name}: {problem}") from problem


@functools.lru_cache(64)
def _prepared(
    name: str,
    subject: str | None,
    registry: tuple[tuple[str, str], ...],
    schema: str | None,
    arrow_type: pa.DataType,
) -> ColumnFormat:
    from barnabas.registry.columns.format import ColumnFormat

    told = ColumnFormat(
        name=cast("FormatName", name),
        subject=subject,
        registry=dict(registry),
        schema_text=schema,
        framing="registry" if registry else "none",
    )
    return told.prepared(arrow_type)
