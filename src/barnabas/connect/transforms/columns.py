"""The keys or the values of a batch, its fields, and the rows that fail."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.connect.converters.converter import RowError
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.defaults import filled_with_default
from barnabas.connect.data.schema import ConnectSchema, SchemaField, Type, java_type_name
from barnabas.connect.errors import ConnectError, DataError, SchemaBuildError
from barnabas.connect.transforms.transform import Transform, Transformed

if TYPE_CHECKING:
    import pyarrow as pa


class Part(StrEnum):
    """What of a record a transform changes."""

    KEY = "key"
    VALUE = "value"


@dataclass(slots=True, frozen=True)
class Column:
    """Keys or values. Their type is that of the schema, if there is one."""

    schema: ConnectSchema | None
    values: pa.Array

    def __len__(self) -> int:
        return len(self.values)


def column_of(batch: ConnectBatch, part: Part) -> Column:
    if part is Part.KEY:
        return declared_column(batch.key_schema, batch.key)
    return declared_column(batch.value_schema, batch.value)


def with_column(batch: ConnectBatch, part: Part, column: Column) -> ConnectBatch:
    if part is Part.KEY:
        return batch.with_key(column.schema, column.values)
    return batch.with_value(column.schema, column.values)


def declared_column(schema: ConnectSchema | None, values: pa.Array) -> Column:
    """Returns the values in the type of the schema. Raises DataError if they have another."""
    import pyarrow as pa

    if schema is None:
        return Column(None, values)
    declared = schema.arrow_type()
    if values.type == declared:
        return Column(schema, values)
    try:
        return Column(schema, values.cast(declared, safe=not pa.types.is_temporal(declared)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(
            f"Invalid Java object for schema with type {schema.type.name}: {error}"
        ) from error


@dataclass(slots=True)
class Failures:
    """The rows that failed, with the first error of each."""

    count: int
    """How many rows there are."""
    errors: dict[int, Exception] = field(default_factory=dict)

    def add(self, row: int, error: Exception) -> None:
        self.errors.setdefault(row, error)

    def add_all(self, is_failed: pa.BooleanArray, error: Exception) -> None:
        """Adds the error for each row for which the mask is true."""
        import pyarrow.compute as pc

        for row in pc.indices_nonzero(is_failed).to_pylist():
            self.errors.setdefault(row, error)

    def add_each(
        self, is_failed: pa.BooleanArray, values: pa.Array, error: Callable[[Any], Exception]
    ) -> None:
        """Adds for each row for which the mask is true the error that belongs to its value."""
        import pyarrow.compute as pc

        rows = pc.indices_nonzero(is_failed)
        for row, value in zip(rows.to_pylist(), values.take(rows).to_pylist(), strict=True):
            self.errors.setdefault(row, error(value))


def transformed(batch: ConnectBatch, failures: Failures) -> Transformed:
    """Returns the rows that did not fail."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = row_numbers(len(batch))
    if not failures.errors:
        return Transformed([(batch, rows)])
    failed = pa.array(sorted(failures.errors), pa.int64())
    is_kept = pc.invert(pc.is_in(rows, value_set=failed))
    errors = [RowError(row, failures.errors[row]) for row in failed.to_pylist()]
    return Transformed([(batch.filter(is_kept), rows.filter(is_kept))], errors)


def row_numbers(count: int) -> pa.Int64Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.indices_nonzero(pa.repeat(pa.scalar(True), count)).cast(pa.int64())


class ColumnTransform(Transform):
    """A transform of keys or of values. Its subclasses for each of them end with Key and Value."""

    part: ClassVar[Part]
    passes_nulls: ClassVar[bool] = False
    """Whether null keys or values are not changed, and cannot fail."""

    def apply(self, batch: ConnectBatch) -> Transformed:
        import pyarrow as pa

        column = column_of(batch, self.part)
        nulls = column.values.null_count
        has_tombstones = nulls and column.schema is not None and not allows_nulls(column.schema)
        if has_tombstones and self.separates_nulls(column):
            return self._apply_apart(batch, column)
        failures = Failures(len(batch))
        if self.passes_nulls and nulls == len(batch):
            return transformed(batch, failures)
        try:
            column = self.convert(column, batch, failures)
        except ConnectError as error:
            if not failures.errors and not (self.passes_nulls and nulls):
                raise
            is_failed = (
                column.values.is_valid()
                if self.passes_nulls
                else pa.repeat(pa.scalar(True), len(batch))
            )
            failures.add_all(is_failed, error)
        return transformed(with_column(batch, self.part, column), failures)

    def separates_nulls(self, column: Column) -> bool:
        """Whether nulls that the schema does not allow must not get the new schema.

        These have no schema in Kafka: they are tombstones.
        """
        return False

    def _apply_apart(self, batch: ConnectBatch, column: Column) -> Transformed:
        """Transforms the nulls in a batch of their own, without schema."""
        import pyarrow.compute as pc

        is_null = column.values.is_null()
        is_valid = pc.invert(is_null)
        rows = row_numbers(len(batch))
        tombstones = with_column(batch, self.part, Column(None, column.values)).filter(is_null)
        done = [(self.apply(tombstones), rows.filter(is_null))]
        if column.values.null_count < len(batch):
            try:
                others = self.apply(batch.filter(is_valid))
            except ConnectError as error:
                count = len(batch) - column.values.null_count
                others = Transformed([], [RowError(row, error) for row in range(count)])
            done.append((others, rows.filter(is_valid)))
        return Transformed(
            [(part, numbers.take(taken)) for each, numbers in done for part, taken in each.batches],
            [
                RowError(numbers[failed.row].as_py(), failed.error)
                for each, numbers in done
                for failed in each.errors
            ],
        )

    @abstractmethod
    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        """Returns the new keys or values; those of rows that failed are ignored.

        Raises ConnectError if none of the rows can be converted.
        """


# Structs


def require_struct(column: Column, purpose: str) -> Column:
    """Returns a column of structs. Raises DataError if the values are something else.

    Maps without schema are structs here; if they came as Arrow maps, they are converted.
    """
    import pyarrow as pa

    arrow_type = column.values.type
    if column.schema is None and pa.types.is_map(arrow_type):
        return Column(None, _struct_of_map(column.values))
    if pa.types.is_struct(arrow_type) or pa.types.is_null(arrow_type):
        return column
    found = java_class(arrow_type, column.schema).removeprefix("class ")
    raise wrong_kind(column.schema, purpose, found)


def java_class(arrow_type: pa.DataType, schema: ConnectSchema | None) -> str:
    """Returns the class that Kafka Connect has such values in, for error messages."""
    import pyarrow as pa

    if schema is None and pa.types.is_struct(arrow_type):
        return "class java.util.HashMap"
    return java_type_name(arrow_type)


def wrong_kind(schema: ConnectSchema | None, purpose: str, found: str) -> DataError:
    kind = "Struct objects supported"
    if schema is None:
        kind = "Map objects supported in absence of schema"
    return DataError(f"Only {kind} for [{purpose}], found: {found}")


def reject_nulls(column: Column, purpose: str, failures: Failures) -> None:
    """Adds an error for each null, which has no schema unless the schema allows nulls."""
    if column.values.null_count:
        schema = column.schema if allows_nulls(column.schema) else None
        failures.add_all(column.values.is_null(), wrong_kind(schema, purpose, "null"))


def allows_nulls(schema: ConnectSchema | None) -> bool:
    return schema is not None and (schema.is_optional or schema.has_default)


def field_columns(column: Column, *, replaces_nulls: bool) -> dict[str, Column]:
    """Returns the fields of structs, null where the struct is null.

    With `replaces_nulls`, nulls are replaced by the default of the field.
    """
    import pyarrow as pa

    if pa.types.is_null(column.values.type):
        return {}
    children = column.values.flatten()
    if column.schema is None:
        names = [each.name for each in column.values.type]
        return {name: Column(None, child) for name, child in zip(names, children, strict=True)}
    return {
        each.name: Column(
            each.schema,
            with_default(child, column.values, each.schema) if replaces_nulls else child,
        )
        for each, child in zip(column.schema.fields, children, strict=True)
    }


def with_default(values: pa.Array, structs: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Replaces the nulls of a field by its default, but not where the struct is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = filled_with_default(values, schema)
    if filled is values or not structs.null_count:
        return filled
    if not pa.types.is_nested(filled.type):
        return pc.if_else(structs.is_valid(), filled, pa.scalar(None, filled.type))
    return filled.take(
        pc.if_else(structs.is_valid(), row_numbers(len(filled)), pa.scalar(None, pa.int64()))
    )


def struct_column(
    schema: ConnectSchema | None, fields: Mapping[str, Column], like: pa.Array, failures: Failures
) -> Column:
    """Returns structs of the fields, null where `like` is null.

    Rows fail whose field is null although it must not be. `schema` has the schemas of the fields.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_valid = like.is_valid() if like.null_count else None
    if schema is not None:
        for name, column in fields.items():
            if column.schema is None or column.schema.is_optional or not column.values.null_count:
                continue
            is_missing = column.values.is_null()
            if is_valid is not None:
                is_missing = pc.and_(is_missing, is_valid)
            failures.add_all(is_missing, missing_field(name, column.schema))
    arrow_type = pa.struct([(name, column.values.type) for name, column in fields.items()])
    values = pa.Array.from_buffers(
        arrow_type,
        len(like),
        [None if is_valid is None else is_valid.buffers()[1]],
        like.null_count,
        children=[column.values for column in fields.values()],
    )
    return Column(schema, values)


def missing_field(name: str, schema: ConnectSchema) -> DataError:
    return DataError(
        f'Invalid value: null used for required field: "{name}", schema type: {schema.type.name}'
    )


def struct_schema_like(
    schema: ConnectSchema, fields: Mapping[str, ConnectSchema] | Sequence[SchemaField]
) -> ConnectSchema:
    """Returns a schema with other fields, and the name, version, doc and parameters of another.

    As in Kafka, it is required and has no default. Raises SchemaBuildError if the fields are not
    valid.
    """
    if isinstance(fields, Mapping):
        fields = [SchemaField(name, each) for name, each in fields.items()]
    names: set[str] = set()
    for each in fields:
        if not each.name:
            raise SchemaBuildError("fieldName cannot be null.")
        if each.name in names:
            raise SchemaBuildError(
                f"Cannot create field because of field name duplication {each.name}"
            )
        names.add(each.name)
    return ConnectSchema(
        Type.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(fields),
    )


def with_default_of(schema: ConnectSchema, original: ConnectSchema) -> ConnectSchema:
    """Returns a schema that is optional and has a default if another schema is and has."""
    return replace(schema, is_optional=original.is_optional, default=original.default)


def _struct_of_map(values: pa.MapArray) -> pa.StructArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = [key for key in values.keys.unique().to_pylist() if isinstance(key, str)]
    fields = {
        key: Column(None, pc.map_lookup(values, pa.scalar(key, values.type.key_type), "last"))
        for key in keys
    }
    return struct_column(None, fields, values, Failures(len(values))).values
