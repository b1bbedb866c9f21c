"""Schemas in a registry, and the decoder of payloads that start with their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.columns import ColumnDecoder, DecodedColumn
from barnabas.columns.language import SchemaLanguage, SchemaSource
from barnabas.columns.schema_ids import NO_SCHEMA_ID, missing_id_reason, read_schema_ids
from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.schema_registry import Schema, SchemaRegistryClient

_NOT_FOUND = 404
_MAX_CLIENTS = 16
_MAX_DECODERS = 1000


@dataclass(slots=True, frozen=True)
class RegisteredSource:
    schema_id: int
    source: SchemaSource


def latest_schema(configuration: Mapping[str, str], subject: str) -> RegisteredSource | None:
    """Returns the latest schema of a subject; None if it has none."""
    from barnabas.schema_registry.error import SchemaRegistryError

    client = _client(configuration)
    try:
        version = client.get_latest_version(subject)
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise
    assert version.schema_id is not None
    assert version.schema is not None
    return RegisteredSource(version.schema_id, _source(client, version.schema))


def register_schema(
    configuration: Mapping[str, str], subject: str, language: str, source: SchemaSource
) -> RegisteredSource:
    """Registers the schema under the subject, unless it is already."""
    from barnabas.schema_registry import Schema

    if source.references:
        raise ValueError(
            f"The schema for subject {subject!r} has references: register it first, with its "
            f"references, and leave out the text."
        )
    schema_id = _client(configuration).register_schema(
        subject, Schema(source.text, language.upper())
    )
    return RegisteredSource(schema_id, source)


def schema_by_id(
    configuration: Mapping[str, str], schema_id: int, subject: str | None
) -> SchemaSource | None:
    """Returns None if the registry does not have the id in the context of the subject."""
    from barnabas.schema_registry.error import SchemaRegistryError

    client = _client(configuration)
    try:
        return _source(client, client.get_schema(schema_id, subject))
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise


class FramedDecoder:
    """Decodes each payload with the schema of its id, to columns of one schema."""

    def __init__(
        self,
        language: SchemaLanguage,
        reader_schema: SchemaSource,
        message: str | None,
        configuration: Mapping[str, str],
        subject: str | None,
    ) -> None:
        self._language = language
        self._reader_schema = reader_schema
        self._message = message
        self._configuration = configuration
        self._subject = subject
        self._by_id: dict[int, ColumnDecoder] = {}
        self.arrow_type = language.arrow_type(reader_schema, message)

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        ids = read_schema_ids(payloads)
        present = [schema_id for schema_id in ids.unique().to_pylist() if schema_id is not None]
        if len(present) == 1:
            return self._decoder(present[0]).decode(payloads)
        return _join(
            [
                (rows, self._decoder(schema_id).decode(payloads.take(rows)))
                for schema_id, rows in _rows_by_id(ids)
            ],
            self.arrow_type,
        )

    def _decoder(self, schema_id: int) -> ColumnDecoder:
        existing = self._by_id.get(schema_id)
        if existing is not None:
            return existing
        if schema_id == NO_SCHEMA_ID:
            return _FailingDecoder(self.arrow_type, None)
        writer_schema = schema_by_id(self._configuration, schema_id, self._subject)
        if writer_schema is None:  # not cached: it may be registered before the next batch
            url = self._configuration["url"]
            return _FailingDecoder(
                self.arrow_type, f"The registry at {url} has no schema {schema_id}."
            )
        if len(self._by_id) >= _MAX_DECODERS:
            self._by_id.clear()
        decoder = self._by_id[schema_id] = self._new_decoder(schema_id, writer_schema)
        return decoder

    def _new_decoder(self, schema_id: int, writer_schema: SchemaSource) -> ColumnDecoder:
        try:
            return self._language.decoder(
                writer_schema, self._reader_schema, self._message, framed=True
            )
        except SchemaError as error:
            return _FailingDecoder(
                self.arrow_type, f"Payloads of schema {schema_id} cannot be read: {error}"
            )


class _FailingDecoder:
    """Returns nulls, with one reason for all, or without it with the reason of each payload."""

    def __init__(self, arrow_type: pa.DataType, reason: str | None) -> None:
        self.arrow_type = arrow_type
        self._reason = reason

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        import pyarrow as pa

        reasons = [
            None if payload is None else self._reason or missing_id_reason(payload)
            for payload in payloads.to_pylist()
        ]
        return DecodedColumn(
            pa.nulls(len(payloads), self.arrow_type), pa.array(reasons, pa.string())
        )


def _rows_by_id(ids: pa.Int64Array) -> Iterator[tuple[int, pa.Array]]:
    """Yields the rows of each id. Null rows have NO_SCHEMA_ID, whose decoder returns null."""
    import pyarrow.compute as pc

    ids = ids.fill_null(NO_SCHEMA_ID)
    for schema_id in ids.unique().to_pylist():
        yield schema_id, pc.indices_nonzero(pc.equal(ids, schema_id))


def _join(parts: list[tuple[pa.Array, DecodedColumn]], arrow_type: pa.DataType) -> DecodedColumn:
    """Joins the parts in the order of their rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not parts:
        return DecodedColumn(pa.nulls(0, arrow_type), None)
    order = pc.array_sort_indices(pa.concat_arrays([rows for rows, _ in parts]))
    values = pa.concat_arrays([decoded.values for _, decoded in parts]).take(order)
    if all(decoded.reasons is None for _, decoded in parts):
        return DecodedColumn(values, None)
    reasons = pa.concat_arrays(
        [
            pa.nulls(len(rows), pa.string()) if decoded.reasons is None else decoded.reasons
            for rows, decoded in parts
        ]
    ).take(order)
    return DecodedColumn(values, reasons if reasons.null_count < len(reasons) else None)


def _source(client: SchemaRegistryClient, schema: Schema) -> SchemaSource:
    from barnabas.schema_registry.client.client import fetch_referenced_texts

    assert schema.schema_str is not None
    return SchemaSource(schema.schema_str, fetch_referenced_texts(schema, client))


def _client(configuration: Mapping[str, str]) -> SchemaRegistryClient:
    return _cached_client(tuple(sorted(configuration.items())))


@lru_cache(_MAX_CLIENTS)
def _cached_client(configuration: tuple[tuple[str, str], ...]) -> SchemaRegistryClient:
    from barnabas.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient(dict(configuration))
