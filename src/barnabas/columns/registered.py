"""Schemas that a registry keeps, and payloads that name them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.columns import Decoded, Decoder
from barnabas.columns.language import Language, SchemaSource
from barnabas.columns.schema_ids import NO_HEADER, schema_ids, why_foreign
from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.schema_registry import Schema, SchemaRegistryClient

_NOT_FOUND = 404
_CLIENTS = 16
_MOST_DECODERS = 1000


@dataclass(slots=True, frozen=True)
class RegisteredSource:
    schema_id: int
    source: SchemaSource


def latest(configuration: Mapping[str, str], subject: str) -> RegisteredSource | None:
    """The newest schema of a subject; None where it has none."""
    from barnabas.schema_registry.error import SchemaRegistryError

    client = _client(configuration)
    try:
        found = client.get_latest_version(subject)
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise
    assert found.schema_id is not None
    assert found.schema is not None
    return RegisteredSource(found.schema_id, _source(client, found.schema))


def register(
    configuration: Mapping[str, str], subject: str, language: str, source: SchemaSource
) -> RegisteredSource:
    """Registered under the subject, unless it is already."""
    from barnabas.schema_registry import Schema

    if source.references:
        raise ValueError(
            f"The schema for subject {subject!r} refers to others: register it first, with its "
            f"references, and leave the text out."
        )
    schema_id = _client(configuration).register_schema(
        subject, Schema(source.text, language.upper())
    )
    return RegisteredSource(schema_id, source)


def by_id(
    configuration: Mapping[str, str], schema_id: int, subject: str | None
) -> SchemaSource | None:
    """None where the registry does not know the id, in the context of the subject."""
    from barnabas.schema_registry.error import SchemaRegistryError

    client = _client(configuration)
    try:
        return _source(client, client.get_schema(schema_id, subject))
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise


class FramedDecoder:
    """Decodes each payload with the schema whose id it begins with, to columns of one schema."""

    def __init__(
        self,
        language: Language,
        wanted: SchemaSource,
        message: str | None,
        configuration: Mapping[str, str],
        subject: str | None,
    ) -> None:
        self._language = language
        self._wanted = wanted
        self._message = message
        self._configuration = configuration
        self._subject = subject
        self._by_id: dict[int, Decoder] = {}
        self.arrow_type = language.arrow_type(wanted, message)

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        ids = schema_ids(payloads)
        present = [schema_id for schema_id in ids.unique().to_pylist() if schema_id is not None]
        if len(present) == 1:
            return self._decoder(present[0]).decode(payloads)
        return _joined(
            [
                (rows, self._decoder(schema_id).decode(payloads.take(rows)))
                for schema_id, rows in _rows_by_id(ids)
            ],
            self.arrow_type,
        )

    def _decoder(self, schema_id: int) -> Decoder:
        known = self._by_id.get(schema_id)
        if known is not None:
            return known
        if schema_id == NO_HEADER:
            return _Refusal(self.arrow_type, None)
        written = by_id(self._configuration, schema_id, self._subject)
        if written is None:  # not kept: it may be registered before the next batch
            url = self._configuration["url"]
            return _Refusal(self.arrow_type, f"The registry at {url} has no schema {schema_id}.")
        if len(self._by_id) >= _MOST_DECODERS:
            self._by_id.clear()
        decoder = self._by_id[schema_id] = self._new_decoder(schema_id, written)
        return decoder

    def _new_decoder(self, schema_id: int, written: SchemaSource) -> Decoder:
        try:
            return self._language.decoder(written, self._wanted, self._message, framed=True)
        except SchemaError as error:
            return _Refusal(
                self.arrow_type, f"What schema {schema_id} wrote cannot be read: {error}"
            )


class _Refusal:
    """Gives nulls and one reason for all; without a reason, what is wrong with each."""

    def __init__(self, arrow_type: pa.DataType, reason: str | None) -> None:
        self.arrow_type = arrow_type
        self._reason = reason

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        import pyarrow as pa

        reasons = [
            None if payload is None else self._reason or why_foreign(payload)
            for payload in payloads.to_pylist()
        ]
        return Decoded(pa.nulls(len(payloads), self.arrow_type), pa.array(reasons, pa.string()))


def _rows_by_id(ids: pa.Int64Array) -> Iterator[tuple[int, pa.Array]]:
    """The rows of each id. Null rows come with NO_HEADER, for whose decoder they stay null."""
    import pyarrow.compute as pc

    ids = ids.fill_null(NO_HEADER)
    for schema_id in ids.unique().to_pylist():
        yield schema_id, pc.indices_nonzero(pc.equal(ids, schema_id))


def _joined(parts: list[tuple[pa.Array, Decoded]], arrow_type: pa.DataType) -> Decoded:
    """The parts in the order of the rows they came from."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not parts:
        return Decoded(pa.nulls(0, arrow_type), None)
    order = pc.array_sort_indices(pa.concat_arrays([rows for rows, _ in parts]))
    values = pa.concat_arrays([decoded.values for _, decoded in parts]).take(order)
    if all(decoded.reasons is None for _, decoded in parts):
        return Decoded(values, None)
    reasons = pa.concat_arrays(
        [
            pa.nulls(len(rows), pa.string()) if decoded.reasons is None else decoded.reasons
            for rows, decoded in parts
        ]
    ).take(order)
    return Decoded(values, reasons if reasons.null_count < len(reasons) else None)


def _source(client: SchemaRegistryClient, schema: Schema) -> SchemaSource:
    from barnabas.schema_registry.client.references import referenced_texts

    assert schema.schema_str is not None
    return SchemaSource(schema.schema_str, referenced_texts(schema, client))


def _client(configuration: Mapping[str, str]) -> SchemaRegistryClient:
    return _cached_client(tuple(sorted(configuration.items())))


@lru_cache(_CLIENTS)
def _cached_client(configuration: tuple[tuple[str, str], ...]) -> SchemaRegistryClient:
    from barnabas.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient(dict(configuration))
