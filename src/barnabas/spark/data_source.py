"""The data source that Spark registers as `format("barnabas")`."""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from barnabas.spark.source.formats import ColumnFormats


class BarnabasDataSource(DataSource):
    """Creates readers and writers of batches and streams; imports each when it is needed."""

    _formats: "ColumnFormats | None" = None
    """The formats when the columns were declared. Spark pickles them with this object, so that
    every reader uses the schemas of the frame, even if newer ones are registered meanwhile."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> "StructType":
        from barnabas.spark.source import resolve_formats, schema

        self._formats = resolve_formats(self.options)
        return schema(self.options, self._formats)

    def reader(self, schema: "StructType") -> "DataSourceReader":
        from barnabas.spark.source import batch_reader

        return batch_reader(self.options, schema, self._formats)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        from barnabas.spark.source import stream_reader

        return stream_reader(self.options, schema, self._formats)

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        from barnabas.spark.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(  # noqa: N802
        self, schema: "StructType", overwrite: bool
    ) -> "DataSourceStreamWriter":
        from barnabas.spark.sink import stream_writer

        return stream_writer(self.options, schema)
