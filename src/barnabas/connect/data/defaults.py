"""Default values instead of nulls, and the nulls that a schema does not allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.connect.data.conform import with_items
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def filled_with_default(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Returns the values with the default of the schema, if it has one, instead of nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.null_count == 0 or not schema.has_default or schema.default is None:
        return values
    default = pa.array([schema.default], values.type)
    if not pa.types.is_nested(values.type):
        return pc.fill_null(values, default[0])
    indices = pa.array(range(len(values)), pa.int64())
    rows = pc.if_else(values.is_null(), len(values), indices)
    return pa.concat_arrays([values, default]).take(rows)


def with_defaults(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Returns the values with the defaults of the schema and of all schemas within it."""
    import pyarrow as pa

    if not _has_defaults(schema):
        return values
    match schema.type:
        case Type.STRUCT if schema.fields:
            children = [
                with_defaults(values.field(index), field.schema)
                for index, field in enumerate(schema.fields)
            ]
            mask = values.is_null() if values.null_count else None
            values = pa.StructArray.from_arrays(children, fields=list(values.type), mask=mask)
        case Type.ARRAY if schema.value_schema is not None:
            items = with_defaults(values.values, schema.value_schema)
            values = with_items(values, values.type, items)
        case Type.MAP if schema.value_schema is not None:
            items = with_defaults(values.items, schema.value_schema)
            fields = [values.type.key_field, values.type.item_field]
            entries = pa.StructArray.from_arrays([values.keys, items], fields=fields)
            values = with_items(values, values.type, entries)
    return filled_with_default(values, schema)


def _has_defaults(schema: ConnectSchema) -> bool:
    inner = [field.schema for field in schema.fields]
    inner += [each for each in (schema.key_schema, schema.value_schema) if each is not None]
    return (schema.has_default and schema.default is not None) or any(map(_has_defaults, inner))


def rows_with_missing_values(values: pa.Array, schema: ConnectSchema) -> dict[int, str]:
    """Returns the path of a null that the schema does not allow, by row.

    A null row is allowed. Fields with a default may be null too: the default is written.
    """
    found: dict[int, str] = {}
    _find_missing(values, schema, "", None, found)
    return found


def missing_value_error(path: str) -> DataError:
    return DataError(
        "Conversion error: null value for field that is required and has no default value"
        + (f" in field {path!r}" if path else "")
    )


def _find_missing(
    values: pa.Array, schema: ConnectSchema, path: str, rows: pa.Array | None, found: dict[int, str]
) -> None:
    """`rows` has the row of each value; None if it is the index."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match schema.type:
        case Type.STRUCT:
            for index, field in enumerate(schema.fields):
                child = values.field(index)
                where = f"{path}.{field.name}" if path else field.name
                if child.null_count and _requires_value(field.schema):
                    bad = child.is_null()
                    if values.null_count:
                        bad = pc.and_(bad, values.is_valid())
                    indices = pc.indices_nonzero(bad)
                    if len(indices):
                        _add(indices if rows is None else rows.take(indices), where, found)
                if field.schema.fields or field.schema.value_schema is not None:
                    _find_missing(child, field.schema, where, rows, found)
        case Type.ARRAY | Type.MAP:
            inner = schema.value_schema
            if inner is None or not (_requires_value(inner) or inner.fields or inner.value_schema):
                return
            lists = values
            if pa.types.is_map(values.type):
                lists = pa.ListArray.from_arrays(values.offsets, values.items)
            items = lists.flatten()
            parents = pc.list_parent_indices(lists)
            if rows is not None:
                parents = rows.take(parents)
            where = f"{path}[]"
            if items.null_count and _requires_value(inner):
                _add(parents.filter(items.is_null()), where, found)
            _find_missing(items, inner, where, parents, found)


def _requires_value(schema: ConnectSchema) -> bool:
    return not schema.is_optional and not (schema.has_default and schema.default is not None)


def _add(rows: pa.Array, path: str, found: dict[int, str]) -> None:
    for row in rows.to_pylist():
        found.setdefault(row, path)
