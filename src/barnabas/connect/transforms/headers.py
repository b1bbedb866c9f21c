"""DropHeaders, HeaderFrom and InsertHeader.

Headers have the bytes that SimpleHeaderConverter, Kafka's default, makes of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance, one_of
from barnabas.connect.converters.headers import SimpleHeaderConverter
from barnabas.connect.data.batch import ConnectBatch, headers_type
from barnabas.connect.errors import DataError, InvalidConfigError
from barnabas.connect.transforms.columns import (
    Column,
    Failures,
    Part,
    column_of,
    field_columns,
    reject_nulls,
    require_struct,
    struct_column,
    struct_schema_like,
    transformed,
    with_column,
)
from barnabas.connect.transforms.literals import normalized_literal
from barnabas.connect.transforms.settings import (
    REPLACE_NULL_WITH_DEFAULT,
    field_list,
    non_empty_list,
    unique,
)
from barnabas.connect.transforms.transform import Transform, Transformed

if TYPE_CHECKING:
    import pyarrow as pa


class DropHeaders(Transform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            field_list(
                "headers", "The names of the headers to remove.", Importance.HIGH, is_required=True
            )
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._names = unique(self.settings["headers"])

    def apply(self, batch: ConnectBatch) -> Transformed:
        import pyarrow as pa
        import pyarrow.compute as pc

        headers = batch.headers
        if headers.null_count < len(headers):
            entries = headers.flatten()
            is_dropped = pc.is_in(
                pc.struct_field(entries, "key"), value_set=pa.array(self._names, pa.string())
            )
            if pc.any(is_dropped, min_count=0).as_py():
                is_kept = pc.invert(is_dropped)
                rows = pc.list_parent_indices(headers).filter(is_kept)
                batch = replace(batch, headers=_lists(entries.filter(is_kept), rows, len(batch)))
        return transformed(batch, Failures(len(batch)))


class _HeaderFrom(Transform):
    part: Part

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "fields",
                ConfigType.LIST,
                doc="The fields to move or copy.",
                importance=Importance.HIGH,
                validator=non_empty_list,
            ),
            ConnectorSetting(
                "headers",
                ConfigType.LIST,
                doc="The names of their headers, in the same order.",
                importance=Importance.HIGH,
                validator=non_empty_list,
            ),
            ConnectorSetting(
                "operation",
                ConfigType.STRING,
                doc="move removes the fields from the key or value, copy does not.",
                importance=Importance.HIGH,
                validator=one_of("move", "copy"),
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._fields: list[str] = self.settings["fields"]
        self._headers: list[str] = self.settings["headers"]
        if len(self._fields) != len(self._headers):
            raise InvalidConfigError(
                "'fields' config must have the same number of elements as 'headers' config."
            )
        self._moves = self.settings["operation"] == "move"
        self._converter = SimpleHeaderConverter()
        self._purpose = f"header {self.settings['operation']}"
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def apply(self, batch: ConnectBatch) -> Transformed:
        failures = Failures(len(batch))
        column = column_of(batch, self.part)
        reject_nulls(column, self._purpose, failures)
        try:
            column = require_struct(column, self._purpose)
            fields = field_columns(column, replaces_nulls=self._replaces_nulls)
            values = [self._header_values(column, fields, name) for name in self._fields]
        except DataError as error:
            failures.add_all(column.values.is_valid(), error)
            return transformed(batch, failures)
        if self._moves:
            column = self._without_fields(column, fields, failures)
        batch = replace(batch, headers=_with_headers(batch.headers, self._headers, values))
        return transformed(with_column(batch, self.part, column), failures)

    def _header_values(
        self, column: Column, fields: Mapping[str, Column], name: str
    ) -> pa.BinaryArray:
        import pyarrow as pa

        if name in fields:
            field = fields[name]
            return self._converter.to_bytes(field.schema, field.values).payloads
        if column.schema is not None:
            raise DataError(f"Field does not exist: {name}")
        return pa.nulls(len(column), pa.binary())

    def _without_fields(
        self, column: Column, fields: Mapping[str, Column], failures: Failures
    ) -> Column:
        kept = {name: field for name, field in fields.items() if name not in self._fields}
        schema = column.schema
        if schema is not None:
            schema = struct_schema_like(
                schema, [each for each in schema.fields if each.name in kept]
            )
        return struct_column(schema, kept, column.values, failures)


class HeaderFromKey(_HeaderFrom):
    part = Part.KEY


class HeaderFromValue(_HeaderFrom):
    part = Part.VALUE


def _not_null(_: str, value: Any) -> str | None:
    return "entry must be non null" if value is None else None


class InsertHeader(Transform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "header",
                ConfigType.STRING,
                doc="The name of the header.",
                importance=Importance.HIGH,
                validator=_not_null,
            ),
            ConnectorSetting(
                "value.literal",
                ConfigType.STRING,
                doc="The value that the header of each record gets.",
                importance=Importance.HIGH,
                validator=_not_null,
            ),
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._name: str = self.settings["header"]
        text = normalized_literal(self.settings["value.literal"])
        self._value = None if text is None else text.encode()

    def apply(self, batch: ConnectBatch) -> Transformed:
        import pyarrow as pa

        value = pa.repeat(pa.scalar(self._value, pa.binary()), len(batch))
        headers = _with_headers(batch.headers, [self._name], [value])
        return transformed(replace(batch, headers=headers), Failures(len(batch)))


def _with_headers(
    headers: pa.ListArray, names: Sequence[str], values: Sequence[pa.BinaryArray]
) -> pa.ListArray:
    """Returns the headers of each row, and after them one of each name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(headers)
    entry_type = headers_type().value_type
    added = [
        pa.StructArray.from_arrays(
            [pa.repeat(pa.scalar(name), count), value], fields=list(entry_type)
        )
        for name, value in zip(names, values, strict=True)
    ]
    rows = pa.array(range(count), pa.int64())
    entries, parents = pa.concat_arrays(added), pa.concat_arrays([rows] * len(added))
    if headers.null_count < count:
        entries = pa.concat_arrays([headers.flatten().cast(entry_type), entries])
        old = pc.list_parent_indices(headers).cast(pa.int64())
        parents = pa.concat_arrays([old, parents])
    if len(entries) > count:
        order = pc.array_sort_indices(parents)
        entries, parents = entries.take(order), parents.take(order)
    return _lists(entries, parents, count)


def _lists(entries: pa.Array, rows: pa.Array, count: int) -> pa.ListArray:
    """Returns the list of the entries of each row; `rows` is ascending."""
    import numpy as np
    import pyarrow as pa

    numbers = np.arange(count + 1)
    offsets = np.searchsorted(rows.to_numpy(zero_copy_only=False), numbers).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), entries)
