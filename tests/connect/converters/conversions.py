"""Helpers: converters with settings, and what they return as Python values."""

import json
from typing import Any, TypeVar

import pyarrow as pa

from barnabas.connect.converters.converter import Conversion, Converter
from barnabas.connect.data.schema import ConnectSchema

C = TypeVar("C", bound=Converter)


def configured(
    converter_class: type[C], settings: dict[str, str] | None = None, *, is_key: bool = False
) -> C:
    converter = converter_class()
    converter.configure(settings or {}, is_key=is_key)
    return converter


def payloads(*documents: Any) -> pa.BinaryArray:
    """Returns bytes as they are, and other values as JSON."""
    return pa.array(
        [
            document if document is None or isinstance(document, bytes) else dumps(document)
            for document in documents
        ],
        pa.binary(),
    )


def dumps(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def rows(conversion: Conversion) -> list[tuple[ConnectSchema | None, Any]]:
    """Returns schema and value of each row, and checks that the runs are contiguous."""
    found: list[tuple[ConnectSchema | None, Any]] = []
    for run in conversion.runs:
        assert run.start == len(found)
        run.values.validate(full=True)
        if run.schema is not None:
            assert run.values.type == run.schema.arrow_type()
        found += [(run.schema, value) for value in run.values.to_pylist()]
    return found


def values(conversion: Conversion) -> list[Any]:
    return [value for _, value in rows(conversion)]


def errors(conversion: Conversion) -> dict[int, str]:
    return {each.row: str(each.error) for each in conversion.errors}
