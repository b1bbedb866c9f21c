"""Topics as files: Parquet, Avro, JSON lines or bytes, in a directory or in an S3 bucket."""

from barnabas.connect.connectors.object_store.sink import ObjectStoreSink, S3Sink

__all__ = ["ObjectStoreSink", "S3Sink"]
