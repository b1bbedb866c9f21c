"""Records of a source that are too large for a request: they fail alone, before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.connect.converters.converter import RowError
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.record_errors import RecordErrors, Stage

if TYPE_CHECKING:
    import pyarrow as pa

CLASS_NAME: Final = "org.apache.kafka.connect.runtime.WorkerSourceTask"
_DEFAULT_BYTES = 1 << 20
_OVERHEAD_BYTES = 256
"""Of a record in a request, without headers."""


class RecordTooLargeError(ConnectError):
    """A record is larger than `max.request.size`."""

    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"


def without_oversized(
    topic: str, rows: pa.RecordBatch, conf: Mapping[str, str], errors: RecordErrors
) -> pa.RecordBatch:
    """Returns the rows that fit into a request; the others are errors of KAFKA_PRODUCE."""
    import pyarrow as pa
    import pyarrow.compute as pc

    limit = int(conf.get("max.request.size", _DEFAULT_BYTES)) - _OVERHEAD_BYTES
    if rows.nbytes <= limit:
        return rows
    key, value = (pc.binary_length(rows.column(name)).fill_null(0) for name in ("key", "value"))
    sizes = pc.add(key.cast(pa.int64()), value.cast(pa.int64()))
    is_large = pc.greater(sizes, limit)
    if not pc.any(is_large).as_py():
        return rows
    indices = pc.indices_nonzero(is_large).to_pylist()
    failed = [
        RowError(
            row,
            RecordTooLargeError(
                f"The message is {sizes[row].as_py()} bytes when serialized which is larger than "
                f"{limit + _OVERHEAD_BYTES}, the value of max.request.size."
            ),
        )
        for row in indices
    ]

    def originals(wanted: object) -> pa.RecordBatch:
        taken = rows.take(pa.array(wanted, pa.int64()))
        count = taken.num_rows
        missing = {
            "topic": pa.array([topic] * count),
            "partition": pa.nulls(count, pa.int32()),
            "offset": pa.nulls(count, pa.int64()),
            "timestamp": pa.nulls(count, pa.timestamp("ms", "UTC")),
            "headers": pa.nulls(count, pa.list_(pa.struct([("key", pa.string())]))),
        }
        present = dict(zip(taken.schema.names, taken.columns, strict=True))
        present["value"] = pa.nulls(count, pa.binary())  # too large for the dead letter queue, too
        return pa.RecordBatch.from_pydict({**missing, **present})

    errors.on_errors(Stage.KAFKA_PRODUCE, CLASS_NAME, failed, originals)
    return rows.filter(pc.invert(is_large))
