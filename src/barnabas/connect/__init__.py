"""Kafka Connect on Spark. Connector authors import from here."""

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    Width,
    at_least,
    between,
    not_empty,
    one_of,
)
from barnabas.connect.connector import (
    AvailableRecords,
    SinkConnector,
    SinkWriter,
    SourceBatch,
    SourceConnector,
    WriteContext,
    WriteReport,
)
from barnabas.connect.converters.converter import Converter
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.schema import ConnectSchema, SchemaField, Type, schema_from_arrow
from barnabas.connect.errors import ConnectError, DataError, InvalidConfigError, RetriableError
from barnabas.connect.transforms.transform import Predicate, Transform, Transformed

__all__ = [
    "AvailableRecords",
    "ConfigDef",
    "ConfigType",
    "ConfigValueInfo",
    "ConnectBatch",
    "ConnectError",
    "ConnectSchema",
    "ConnectorSetting",
    "Converter",
    "DataError",
    "Importance",
    "InvalidConfigError",
    "Predicate",
    "RetriableError",
    "SchemaField",
    "SinkConnector",
    "SinkWriter",
    "SourceBatch",
    "SourceConnector",
    "Transform",
    "Transformed",
    "Type",
    "Width",
    "WriteContext",
    "WriteReport",
    "at_least",
    "between",
    "not_empty",
    "one_of",
    "schema_from_arrow",
    "source_batch",
]
