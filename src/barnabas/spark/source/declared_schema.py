"""The columns that the source declares to Spark: those of Spark's connector, with formats."""

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.spark.options_parser import OptionError, ParsedOptions
from barnabas.spark.source.formats import ColumnFormats

SIZE = "size"
"""The column with the bytes of a record's key and value before decoding."""

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
CORRUPT = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("reason", StringType()),
    ]
)


def declared_schema(options: ParsedOptions, formats: ColumnFormats) -> StructType:
    """Returns the columns for the options and formats."""
    columns = connector_fields(headers=options.flag("includeHeaders", default=False))
    if options.flag("includeSize", default=False):
        columns.append(StructField(SIZE, IntegerType()))
    for index, format_ in enumerate((formats.key, formats.value)):
        if format_ is not None:
            columns[index].dataType = from_arrow_type(format_.arrow_type())
    if formats.has_corrupt_column:
        if formats.corrupt_column in [field.name for field in columns]:
            raise OptionError(
                f"columnNameOfCorruptRecord must not be {formats.corrupt_column!r}, which is"
                f" the name of another column."
            )
        columns.append(StructField(formats.corrupt_column, CORRUPT))
    return StructType(columns)


def connector_fields(*, headers: bool) -> list[StructField]:
    """Returns the columns of Spark's Kafka connector."""
    columns = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if headers:
        columns.append(StructField("headers", ArrayType(HEADER)))
    return columns
