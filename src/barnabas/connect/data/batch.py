"""Records as columns: what converters produce, transforms change and connectors read and write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from barnabas.connect.data.schema import ConnectSchema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class ConnectBatch:
    """Records that share a schema of their keys and one of their values. All arrays have the
    same length.

    A schema of None means that the values have none: they are Connect's maps, lists and
    primitives, here structs, lists and primitives of a type that was inferred from the data. A
    field that a map lacks is null.
    """

    topic: pa.Array
    """string. For a source, the topic to write to."""
    partition: pa.Array
    """int32. For a source, null unless the connector chooses the partition."""
    offset: pa.Array
    """int64. Null in a source."""
    timestamp: pa.Array
    """timestamp("ms", "UTC"). Null if the record has none, or gets one when it is written."""
    key_schema: ConnectSchema | None
    key: pa.Array
    value_schema: ConnectSchema | None
    value: pa.Array
    headers: pa.Array
    """list<struct<key: string, value: binary>>, already converted. Null without headers."""

    def __len__(self) -> int:
        return len(self.topic)

    def take(self, rows: pa.Array) -> Self:
        """Returns the rows with these indices."""
        return self._map("take", rows)

    def filter(self, mask: pa.Array) -> Self:
        """Returns the rows whose mask is true."""
        return self._map("filter", mask)

    def slice(self, start: int, length: int | None = None) -> Self:
        return self._map("slice", start, length)

    def with_value(self, schema: ConnectSchema | None, value: pa.Array) -> Self:
        return replace(self, value_schema=schema, value=value)

    def with_key(self, schema: ConnectSchema | None, key: pa.Array) -> Self:
        return replace(self, key_schema=schema, key=key)

    def _map(self, method: str, *arguments: object) -> Self:
        arrays = {name: getattr(getattr(self, name), method)(*arguments) for name in _ARRAYS}
        return replace(self, **arrays)


_ARRAYS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def headers_type() -> pa.DataType:
    import pyarrow as pa

    return pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def source_batch(
    topic: str,
    value_schema: ConnectSchema | None,
    value: pa.Array,
    key_schema: ConnectSchema | None = None,
    key: pa.Array | None = None,
    timestamp: pa.Array | None = None,
    headers: pa.Array | None = None,
) -> ConnectBatch:
    """Returns records for one topic, whose partitions the producer chooses."""
    import pyarrow as pa

    count = len(value)
    return ConnectBatch(
        topic=pa.repeat(pa.scalar(topic), count),
        partition=pa.nulls(count, pa.int32()),
        offset=pa.nulls(count, pa.int64()),
        timestamp=pa.nulls(count, pa.timestamp("ms", "UTC")) if timestamp is None else timestamp,
        key_schema=key_schema,
        key=pa.nulls(count) if key is None else key,
        value_schema=value_schema,
        value=value,
        headers=pa.nulls(count, headers_type()) if headers is None else headers,
    )
