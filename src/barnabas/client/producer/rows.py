"""Arrow rows to batches, without an object per record.

The rows of a RecordBatch or Table have a column `value`, and may have `key`, `partition`,
`timestamp` and `headers`. They keep their order within a partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._batch import Batch
from barnabas.client.producer._partitioners import BY_NAME, murmur2, spread
from barnabas.client.producer.sealing import Seal
from barnabas.client.settings import ProducerSettings
from barnabas.wire.records.arrow import encode
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK_BYTES = 16 << 20
"""So much is encoded at a time: what waits for room waits as rows."""

OnRows = Callable[[Any, int], object]
"""Called with a KafkaError or None, and how many rows it is about."""


class Rows:
    """Encodes rows for a topic with so many partitions."""

    def __init__(self, settings: ProducerSettings, accumulator: Accumulator, topic: str) -> None:
        self._accumulator = accumulator
        self._topic = topic
        self._partitions = accumulator.partition_count(topic)
        self._batch_bytes = min(settings.batch_size, settings.max_request_size)
        self._seal = Seal.of(settings)
        self._hash = _hash(settings, topic, self._partitions)

    def batches(self, rows: pa.RecordBatch | pa.Table, on_rows: OnRows | None) -> Iterator[Batch]:
        """The batches to be appended, each when it is asked for."""
        for chunk in _chunks(rows):
            for partition, part in self._split(chunk):
                for encoded in encode(part, self._batch_bytes, int(time.time() * 1000)):
                    place = partition
                    if place < 0:
                        place = self._accumulator.next_sticky(self._topic)
                    batch = Batch.encoded(self._topic, place, *encoded, time.monotonic(), on_rows)
                    if self._seal.codec:
                        self._seal.put(batch)  # compressed here: the loop has enough to do
                    yield batch

    def _split(self, rows: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each partition; -1 has those that may go anywhere."""
        import pyarrow as pa
        import pyarrow.compute as pc

        partitions = self._partitions_of(rows)
        if partitions is None:
            yield -1, rows
            return
        rows = rows.drop_columns(["partition"]) if "partition" in rows.schema.names else rows
        order = pc.array_sort_indices(partitions)  # which is stable
        runs = pc.run_end_encode(partitions.take(order))
        rows = rows.take(order)
        begin = 0
        for partition, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            yield partition, rows.slice(begin, end - begin)
            begin = end
        assert begin == len(rows), f"{pa.__version__} left rows out"

    def _partitions_of(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Those that rows name; of rows that name none, those of their keys."""
        import pyarrow.compute as pc

        named = self._named(rows)
        if named is not None and not named.null_count:
            return named
        of_keys = self._of_keys(rows)
        if named is None:
            return of_keys
        return named.fill_null(-1) if of_keys is None else pc.coalesce(named, of_keys)

    def _named(self, rows: pa.RecordBatch) -> pa.Array | None:
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

    def _of_keys(self, rows: pa.RecordBatch) -> pa.Array | None:
        import pyarrow as pa

        if "key" not in rows.schema.names or self._hash is None:
            return None
        hashed, missing = self._hash
        keys = rows.column("key").cast(pa.binary())
        validity, offsets, content = keys.buffers()
        found = pa.allocate_buffer(4 * max(1, len(keys)))
        spread(
            view(offsets or bytes(4), "i"),
            view(validity, "B"),
            view(content, "B"),
            keys.offset if offsets else 0,
            len(keys),
            hashed,
            self._partitions,
            missing,
            view(found, "i"),
        )
        return pa.Array.from_buffers(pa.int32(), len(keys), [None, found])


def _hash(
    settings: ProducerSettings, topic: str, partitions: int
) -> tuple[Callable[[bytes], int] | None, int] | None:
    """How keys are hashed (None: by murmur2), and the partition of rows without one."""
    choose = settings.partitioner
    if settings.ignore_keys or partitions < 1:
        return None
    if not isinstance(choose, str):
        return (lambda key: choose(topic, key, partitions)), -1
    hashed, frees_missing, _ = BY_NAME[choose]
    if hashed is None:
        return None
    missing = -1 if frees_missing else hashed(b"") % partitions
    return (None if hashed is murmur2 else hashed), missing


def _chunks(rows: pa.RecordBatch | pa.Table) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    if not isinstance(rows, pa.RecordBatch | pa.Table):
        raise TypeError(f"Rows are a RecordBatch or a Table, not {type(rows).__name__}.")
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        if batch.num_rows:
            step = max(1, CHUNK_BYTES * batch.num_rows // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, step):
                yield batch.slice(first, step)
