"""From the connector's columns to those that were declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from barnabas.spark.naming import OptionError
from barnabas.spark.source.columns import fields

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


def declared(options: Mapping[str, str]) -> StructType:
    """The columns, as the options make them."""
    headers = options.get("includeheaders", "false").strip().lower()
    if headers not in ("true", "false"):
        raise OptionError(f"includeHeaders must be true or false, not {headers!r}.")
    return StructType(fields(headers=headers == "true"))


@dataclass(slots=True, frozen=True)
class Shape:
    """The columns that are handed to Spark, in their order."""

    names: tuple[str, ...]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(list(self.names))


def shape_of(options: Mapping[str, str], schema: StructType) -> Shape:
    """OptionError where a schema asks for columns that there are not."""
    offered = {field.name: field.dataType for field in declared(options)}
    for field in schema:
        if offered.get(field.name) != field.dataType:
            raise OptionError(
                f"The schema has a column {field.name} of type {field.dataType.simpleString()}."
                f" There are {StructType(list(declared(options))).simpleString()}."
            )
    return Shape(tuple(field.name for field in schema))
