"""InsertField: fields with the topic, partition, offset or timestamp of a record, or a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, invalid_value
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import TIMESTAMP, ConnectSchema, SchemaField, Type
from barnabas.connect.errors import DataError, InvalidConfigError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    field_columns,
    require_struct,
    struct_column,
    struct_schema_like,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT

if TYPE_CHECKING:
    import pyarrow as pa

_PURPOSE = "field insertion"

_OPTIONAL = "With ! at its end the field is required, with ? or neither it is optional."

_SCHEMAS = {
    "topic": ConnectSchema(Type.STRING),
    "partition": ConnectSchema(Type.INT32),
    "offset": ConnectSchema(Type.INT64),
    "timestamp": ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
    "static": ConnectSchema(Type.STRING),
}


@dataclass(slots=True, frozen=True)
class _Insertion:
    source: str
    name: str
    is_optional: bool

    @property
    def schema(self) -> ConnectSchema:
        schema = _SCHEMAS[self.source]
        return schema.as_optional() if self.is_optional else schema


class _InsertField(ColumnTransform):
    passes_nulls = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            _setting("topic.field", f"The field that gets the topic. {_OPTIONAL}"),
            _setting("partition.field", f"The field that gets the partition. {_OPTIONAL}"),
            _setting("offset.field", f"The field that gets the offset, in a sink. {_OPTIONAL}"),
            _setting("timestamp.field", f"The field that gets the timestamp. {_OPTIONAL}"),
            _setting("static.field", f"The field that gets static.value. {_OPTIONAL}"),
            _setting("static.value", "The text that static.field gets."),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        names = {source: self.settings[f"{source}.field"] for source in _SCHEMAS}
        self._insertions = [
            _Insertion(source, name.removesuffix(name[-1:]), name[-1:] == "?")
            if name[-1:] in ("?", "!")
            else _Insertion(source, name, True)
            for source, name in names.items()
            if name is not None
        ]
        if not self._insertions:
            raise InvalidConfigError("No field insertion configured")
        self._text: str | None = self.settings["static.value"]
        if names["static"] is not None and self._text is None:
            text = f"No value specified for static field: {names['static']}"
            raise InvalidConfigError(invalid_value("static.value", None, text))
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        column = require_struct(column, _PURPOSE)
        self._check_offsets(batch)
        fields = field_columns(column, replaces_nulls=self._replaces_nulls)
        if column.schema is None:
            for each in self._insertions:
                self._insert_into_map(fields, each, batch)
            return struct_column(None, fields, column.values, failures)
        inserted = [SchemaField(each.name, each.schema) for each in self._insertions]
        schema = struct_schema_like(column.schema, [*column.schema.fields, *inserted])
        for each in self._insertions:
            # A missing value is an error only when the record is converted.
            fields[each.name] = Column(None, self._values(each, batch))
        return struct_column(schema, fields, column.values, failures)

    def _check_offsets(self, batch: ConnectBatch) -> None:
        has_offset = any(each.source == "offset" for each in self._insertions)
        if has_offset and batch.offset.null_count == len(batch):
            raise DataError(
                f"Only SinkRecord supported for [{_PURPOSE}], "
                "found: org.apache.kafka.connect.source.SourceRecord"
            )

    def _insert_into_map(
        self, fields: dict[str, Column], insertion: _Insertion, batch: ConnectBatch
    ) -> None:
        """A partition or timestamp that a record has not is not inserted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self._values(insertion, batch)
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        if values.null_count == len(values):
            return
        before = fields.get(insertion.name)
        if values.null_count and before is not None and before.values.type == values.type:
            values = pc.coalesce(values, before.values)
        fields[insertion.name] = Column(None, values)

    def _values(self, insertion: _Insertion, batch: ConnectBatch) -> pa.Array:
        import pyarrow as pa

        match insertion.source:
            case "topic":
                return batch.topic.cast(pa.string())
            case "partition":
                return batch.partition.cast(pa.int32())
            case "offset":
                return batch.offset
            case "timestamp":
                return batch.timestamp
            case _:
                return pa.repeat(pa.scalar(self._text, pa.string()), len(batch))


def _setting(name: str, doc: str) -> ConnectorSetting:
    return ConnectorSetting(name, ConfigType.STRING, None, doc)


class InsertFieldKey(_InsertField):
    part = Part.KEY


class InsertFieldValue(_InsertField):
    part = Part.VALUE
