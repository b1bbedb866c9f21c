"""Values of records as the columns of a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.connect.converters.converter import RowError
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import ConnectError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

VALUE: Final = "value"
"""The column of values that are no structs."""


def columns_of(
    batch: ConnectBatch, schema: pa.Schema, key_column: str
) -> tuple[pa.RecordBatch, list[RowError]]:
    """Returns rows with the columns, and the records that do not fit.

    Fields that are no columns are left out, and columns that are no fields are null.
    """
    import pyarrow as pa

    try:
        return pa.RecordBatch.from_arrays(_arrays(batch, schema, key_column), schema=schema), []
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        if len(batch) == 1:
            failed = DataError(f"The value does not fit the columns: {error}")
            return pa.RecordBatch.from_pylist([], schema), [RowError(0, failed)]
    half = len(batch) // 2
    rows, errors = columns_of(batch.slice(0, half), schema, key_column)
    more, others = columns_of(batch.slice(half), schema, key_column)
    moved = [RowError(each.row + half, each.error) for each in others]
    return pa.concat_batches([rows, more]), errors + moved


def _arrays(batch: ConnectBatch, schema: pa.Schema, key_column: str) -> list[pa.Array]:
    import pyarrow as pa

    value = batch.value
    is_struct = pa.types.is_struct(value.type)
    arrays = []
    for field in schema:
        if key_column and field.name == key_column:
            arrays.append(_fitted(batch.key, field.type))
        elif is_struct:
            arrays.append(_field(value, field))
        elif field.name == VALUE:
            arrays.append(_fitted(value, field.type))
        else:
            raise pa.ArrowInvalid(f"{value.type} is not a struct with a field {field.name}")
    return arrays


def _field(struct: pa.StructArray, field: pa.Field) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if struct.type.get_field_index(field.name) < 0:
        return pa.nulls(len(struct), field.type)
    return _fitted(pc.struct_field(struct, field.name), field.type)


def _fitted(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Returns values in another type; structs match by the names of their fields."""
    import pyarrow as pa

    from barnabas.connect.data.conform import conform

    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target)
    if pa.types.is_struct(target) and pa.types.is_struct(values.type):
        children = [_field(values, field) for field in target]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    return conform(values, target)


def inferred_columns(batches: Sequence[ConnectBatch], key_column: str) -> pa.Schema:
    """Returns the columns that records have. Raises ConnectError if they have none in common."""
    import pyarrow as pa

    found: list[pa.Schema] = []
    for batch in batches:
        type_ = batch.value.type
        fields = list(type_) if pa.types.is_struct(type_) else [pa.field(VALUE, type_)]
        if key_column:
            fields = [pa.field(key_column, batch.key.type), *fields]
        found.append(pa.schema(fields))
    try:
        schema = pa.unify_schemas(found, promote_options="permissive")
    except pa.ArrowInvalid as error:
        raise ConnectError(f"The records have no columns in common: {error}") from None
    typed = [field for field in schema if not pa.types.is_null(field.type)]
    return pa.schema(typed)
