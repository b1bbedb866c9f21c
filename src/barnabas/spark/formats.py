"""How keys and values are encoded, as far as options say."""

from typing import cast

from barnabas.columns.format import FORMAT_NAMES, ColumnFormat, FormatName
from barnabas.spark.options_parser import REGISTRY_PREFIX, OptionError, ParsedOptions


def requested_format(told: ParsedOptions, column: str) -> ColumnFormat | None:
    """None where none is named. Without a registry payloads bear no id of a schema."""
    name = told.text(f"{column}Format")
    if name is None:
        return None
    if name.lower() not in FORMAT_NAMES:
        raise OptionError(f"{column}Format must be one of {', '.join(FORMAT_NAMES)}, not {name!r}.")
    registry = told.with_prefix(REGISTRY_PREFIX)
    return ColumnFormat(
        cast("FormatName", name.lower()),
        told.text(f"{column}Subject"),
        registry,
        schema_text=told.text(f"{column}Schema"),
        message=told.text(f"{column}Message"),
        framing="registry" if registry else "none",
    )
