"""The nodes that write columns as JSON. Arrow turns scalars into text; nodes put it together.

Times are text of RFC 3339, bytes are base64, and numbers that are none (NaN, infinity) are null.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from barnabas.columns.json_text import _text
from barnabas.columns.json_text.kinds import JSON, Kind, List, Map, Object, Scalar
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import header
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


class DocumentEncoder:
    """Writes rows as documents, after the schema's id unless that is None; nulls have none."""

    def __init__(self, kind: Kind, arrow_type: pa.DataType, schema_id: int | None) -> None:
        """SchemaError, naming the field, where the type has no place in the schema."""
        import pyarrow as pa

        self._kind = kind
        self._header = b"" if schema_id is None else header(schema_id)
        _node(kind, pa.array([], arrow_type), "")

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        count = len(values)
        offsets = pa.allocate_buffer(4 * count + 4)
        content = _text.write(
            _node(self._kind, values, ""),
            self._header,
            view(offsets, "i"),
            2 * values.nbytes + count * (len(self._header) + 16),
        )
        documents = pa.Array.from_buffers(
            pa.binary(), count, [None, offsets, pa.py_buffer(content)]
        )
        if values.null_count == 0:
            return documents
        import pyarrow.compute as pc

        return pc.if_else(values.is_valid(), documents, None)


def _node(kind: Kind, values: pa.Array, path: str) -> _text.Node:
    import pyarrow as pa

    is_type = pa.types
    given = values.type
    if is_type.is_null(given):
        return _text.Node(memoryview(bytes(len(values) // 8 + 1)), 0)
    if is_type.is_struct(given) and (isinstance(kind, Object) or kind == JSON):
        return _fields(kind, values, path)
    if is_type.is_list(given) and (isinstance(kind, List) or kind == JSON):
        items = kind.items if isinstance(kind, List) else JSON
        return _text.Items(
            *_nulls(values), offsets_of(values), None, _node(items, values.values, f"{path}[]")
        )
    if is_type.is_map(given) and not isinstance(kind, List | Object):
        inner = kind.values if isinstance(kind, Map) else JSON
        keys = _node(Scalar("string"), values.keys, path)
        return _text.Items(
            *_nulls(values), offsets_of(values), keys, _node(inner, values.items, path)
        )
    if isinstance(kind, Scalar):
        return _scalar(kind, values, path)
    raise _mismatch(path, given, type(kind).__name__.lower())


def _fields(kind: Kind, values: pa.StructArray, path: str) -> _text.Node:
    inner = dict(kind.fields) if isinstance(kind, Object) else {}
    names, nodes, required = [], [], []
    for index, field in enumerate(values.type):
        where = f"{path}.{field.name}" if path else field.name
        if isinstance(kind, Object) and not kind.is_open and field.name not in inner:
            raise SchemaError(
                f"Field {where!r} is not in the schema, which has no additional properties: drop "
                f"the column, or add a property."
            )
        names.append(json.dumps(field.name).encode() + b":")
        nodes.append(_node(inner.get(field.name, JSON), values.field(index), where))
        required.append(isinstance(kind, Object) and field.name in kind.required)
    return _text.Fields(*_nulls(values), names, nodes, required)


def _scalar(kind: Scalar, values: pa.Array, path: str) -> _text.Node:
    import pyarrow as pa

    is_type, given = pa.types, values.type
    is_any = kind == JSON
    if is_type.is_string(given) and is_any:
        return _written(_checked(values, path), is_quoted=False)
    if is_type.is_boolean(given) and (is_any or kind.name == "boolean"):
        return _written(values.cast(pa.string()), is_quoted=False)
    if is_type.is_integer(given) and (is_any or kind.name in ("integer", "number")):
        return _written(values.cast(pa.string()), is_quoted=False)
    if is_type.is_floating(given) and (is_any or kind.name == "number"):
        return _written(_finite(values).cast(pa.string()), is_quoted=False)
    if is_type.is_decimal(given) and (is_any or kind.name == "number"):
        return _written(values.cast(pa.string()), is_quoted=False)
    if kind.name in ("string", "json"):
        return _written(_as_text(values, path), is_quoted=True)
    raise _mismatch(path, given, kind.name)


def _written(texts: pa.Array, *, is_quoted: bool) -> _text.Node:
    return _text.Text(*_nulls(texts), offsets_of(texts), view(texts.buffers()[2], "B"), is_quoted)


def _as_text(values: pa.Array, path: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_type, given = pa.types, values.type
    if is_type.is_string(given):
        return values
    if is_type.is_timestamp(given):
        return pc.strftime(values, "%Y-%m-%dT%H:%M:%S" + ("Z" if given.tz == "UTC" else ""))
    if is_type.is_date(given) or is_type.is_time(given):
        return values.cast(pa.string())
    if is_type.is_binary(given):
        encoded = [each and base64.b64encode(each).decode() for each in values.to_pylist()]
        return pa.array(["" if each == b"" else each for each in encoded], pa.string())
    raise _mismatch(path, given, "string")


def _checked(texts: pa.Array, path: str) -> pa.Array:
    """Texts of a property that may be anything are JSON, which goes out as it is."""
    for row, text in enumerate(texts.to_pylist()):
        try:
            if text is not None:
                json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Row {row} cannot be written: field {path!r} is not JSON, as what may be of any "
                f"type has to be: {error}."
            ) from error
    return texts


def _refuse_constant(name: str) -> None:
    """NaN and Infinity, which Python takes for JSON."""
    raise ValueError(f"{name} is no number of JSON")


def _finite(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.if_else(pc.is_finite(values), values, None)


def _nulls(values: pa.Array) -> tuple[memoryview, int]:
    if values.null_count == 0:
        return view(None, "B"), 0
    return view(values.buffers()[0], "B"), values.offset


def _mismatch(path: str, given: pa.DataType, wanted: str) -> SchemaError:
    where = f"Field {path!r}" if path else "The value"
    return SchemaError(f"{where} has type {given}, and the schema wants {wanted}.")
