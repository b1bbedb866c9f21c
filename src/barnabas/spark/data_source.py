"""What Spark asks `format("barnabas")` for: readers and writers, of batches and streams."""

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
    """What Spark asks for; each part is loaded where it is needed."""

    _formats: "ColumnFormats | None" = None
    """As they were when the columns were declared. Spark hands them on with this object: so all
    who read agree with the frame, whatever is registered meanwhile."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> "StructType":
        from barnabas.spark.source import settle
        from barnabas.spark.source import declared_schema

        self._formats = settle(self.options)
        return declared_schema(self.options, self._formats)

    def reader(self, schema: "StructType") -> "DataSourceReader":
        from barnabas.spark.source import batch_reader

        return batch_reader(self.options, declared_schema, self._formats)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        from barnabas.spark.source import stream_reader

        return stream_reader(self.options, declared_schema, self._formats)

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        from barnabas.spark.sink import batch_writer

        return batch_writer(self.options, declared_schema, overwrite)

    def streamWriter(  # noqa: N802
        self, schema: "StructType", overwrite: bool
    ) -> "DataSourceStreamWriter":
        from barnabas.spark.sink import stream_writer

        return stream_writer(self.options, declared_schema)
