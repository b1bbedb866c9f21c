"""Encodes the rows of Arrow tables into batches, without an object per record.

The rows of a RecordBatch or Table have a column `value`, and may have `key`, `partition`,
`timestamp` and `headers`. They keep their order within a partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.producer._partitioners import BY_NAME, hash_partitions, murmur2
from barnabas.client.producer.batch_finisher import BatchFinisher
from barnabas.client.settings import ProducerSettings
from barnabas.wire.records.arrow import encode
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_BYTES = 16 << 20
"""The amount that is encoded at a time: the rest waits for buffer space as Arrow rows."""

OnRows = Callable[[Any, int], object]
"""Called with a KafkaError or None, and the number of rows."""


class ArrowBatchEncoder:
    """Encodes rows for a topic whose partition count is known."""

    def __init__(
        self, settings: ProducerSettings, accumulator: RecordAccumulator, topic: str
    ) -> None:
        self._accumulator = accumulator
        self._topic = topic
        self._partitions = accumulator.partition_count(topic)
        self._batch_bytes = min(settings.batch_size, settings.max_request_size)
        self._finisher = BatchFinisher.from_settings(settings)
        self._key_hash = _key_hash(settings, topic, self._partitions)

    def batches(
        self, rows: pa.RecordBatch | pa.Table, on_rows: OnRows | None
    ) -> Iterator[ProducerBatch]:
        """Yields the batches to append, encoded one chunk at a time."""
        for chunk in _chunks(rows):
            for partition, part in self._split(chunk):
                for encoded in encode(part, self._batch_bytes, int(time.time() * 1000)):
                    target = partition
                    if target < 0:
                        target = self._accumulator.next_sticky_partition(self._topic)
                    batch = ProducerBatch.from_encoded(
                        self._topic, target, *encoded, time.monotonic(), on_rows
                    )
                    if self._finisher.codec:
                        self._finisher.finish(batch)  # compressed here, to take load off the loop
                    yield batch

    def _split(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yields the rows of each partition; those of -1 may go to any."""
        import pyarrow as pa
        import pyarrow.compute as pc

        partitions = self._partitions_of(rows)
        if partitions is None:
            yield -1, rows
            return
        rows = rows.drop_columns(["partition"]) if "partition" in rows.schema.names else rows
        order = pc.array_sort_indices(partitions)  # a stable sort
        runs = pc.run_end_encode(partitions.take(order))
        rows = rows.take(order)
        begin = 0
        for partition, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield partition, rows.slice(begin, end - begin)
            begin = end
        assert begin == len(rows), f"{pa.__version__} left rows out"

    def _partitions_of(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Returns the partitions that rows name, or else those of their keys."""
        import pyarrow.compute as pc

        named = self._named_partitions(rows)
        if named is not None and not named.null_count:
            return named
        by_key = self._key_partitions(rows)
        if named is None:
            return by_key
        return named.fill_null(-1) if by_key is None else pc.coalesce(named, by_key)

    def _named_partitions(self, rows: pa.RecordBatch) -> pa.Array | None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if "partition" not in rows.schema.names:
            return None
        named = rows.column("partition").cast(pa.int32())
        bounds = pc.min_max(named).as_py()
        if bounds["max"] is not None and (bounds["max"] >= self._partitions or bounds["min"] < 0):
            raise ValueError(
                f"Rows name partitions {bounds['min']} to {bounds['max']}; "
                f"{self._topic} has {self._partitions}."
            )
        return named

    def _key_partitions(self, rows: pa.RecordBatch) -> pa.Array | None:
        import pyarrow as pa

        if "key" not in rows.schema.names or self._key_hash is None:
            return None
        hash_key, null_partition = self._key_hash
        keys = rows.column("key").cast(pa.binary())
        validity, offsets, content = keys.buffers()
        partitions = pa.allocate_buffer(4 * max(1, len(keys)))
        hash_partitions(
            view(offsets or bytes(4), "i"),
            view(validity, "B"),
            view(content, "B"),
            keys.offset if offsets else 0,
            len(keys),
            hash_key,
            self._partitions,
            null_partition,
            view(partitions, "i"),
        )
        return pa.Array.from_buffers(pa.int32(), len(keys), [None, partitions])


def _key_hash(
    settings: ProducerSettings, topic: str, partitions: int
) -> tuple[Callable[[bytes], int] | None, int] | None:
    """Returns the hash of keys (None: murmur2), and the partition of rows without a key."""
    partitioner = settings.partitioner
    if settings.ignore_keys or partitions < 1:
        return None
    if not isinstance(partitioner, str):
        return (lambda key: partitioner(topic, key, partitions)), -1
    hash_key, sticks_null_keys, _ = BY_NAME[partitioner]
    if hash_key is None:
        return None
    null_partition = -1 if sticks_null_keys else hash_key(b"") % partitions
    return (None if hash_key is murmur2 else hash_key), null_partition


def _chunks(rows: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if not isinstance(rows, pa.RecordBatch | pa.Table):
        raise TypeError(f"Rows are a RecordBatch or a Table, not {type(rows).__name__}.")
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        if batch.num_rows:
            step = max(1, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, step):
                yield batch.slice(first, step)
