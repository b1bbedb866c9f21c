"""The format options of keys and values, which source and sink share."""

from typing import cast

from barnabas.columns.format import FORMAT_NAMES, ColumnFormat, FormatName
from barnabas.spark.options_parser import REGISTRY_PREFIX, OptionError, ParsedOptions


def requested_format(options: ParsedOptions, column: str) -> ColumnFormat | None:
    """Returns the format of a column, or None if `<column>Format` is not set.

    Without a registry, payloads have no schema id.
    """
    name = options.text(f"{column}Format")
    if name is None:
        return None
    if name.lower() not in FORMAT_NAMES:
        raise OptionError(f"{column}Format must be one of {', '.join(FORMAT_NAMES)}, not {name!r}.")
    registry = options.with_prefix(REGISTRY_PREFIX)
    return ColumnFormat(
        cast("FormatName", name.lower()),
        options.text(f"{column}Subject"),
        registry,
        schema_text=options.text(f"{column}Schema"),
        message=options.text(f"{column}Message"),
        framing="registry" if registry else "none",
    )
