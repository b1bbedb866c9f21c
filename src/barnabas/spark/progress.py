"""Progress of a streaming query that reads topics: rows, bytes and lag.

    spark.streams.addListener(ProgressLines())

Spark reports offsets and rows of every source, and lag follows from the offsets. A source written
in Python cannot add its own metrics to the report: bytes are there only if `counting_bytes`
observes them.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

BYTES_PREFIX = "barnabas.bytes."
"""Prefix of the names of observations that count bytes; the name of the frame follows."""

Partition = tuple[str, int]


@dataclass(slots=True, frozen=True)
class SourceProgress:
    """What a micro-batch read from one source, and the lag after it."""

    topics: tuple[str, ...]
    rows: int
    rows_per_s: float
    """Rows of the batch by its duration."""
    lag: Mapping[Partition, int]
    """Records that are not read yet; empty if the source reported no latest offsets."""

    @property
    def behind(self) -> int:
        """The lag of all partitions."""
        return sum(self.lag.values())


@dataclass(slots=True, frozen=True)
class BatchProgress:
    """One micro-batch of a query."""

    query: str
    number: int
    duration_ms: int
    sources: tuple[SourceProgress, ...]
    """The sources that are topics, read by this connector or Spark's."""
    bytes_by_frame: Mapping[str, int]
    """The bytes of each frame that `counting_bytes` counts, by the name of the frame."""

    @property
    def size_bytes(self) -> int | None:
        """The bytes of all frames; None if no frame is counted."""
        return sum(self.bytes_by_frame.values()) if self.bytes_by_frame else None

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    @property
    def behind(self) -> int:
        return sum(source.behind for source in self.sources)

    def __str__(self) -> str:
        parts = [f"{self.query} batch {self.number}: {self.rows:,} rows in {self.duration_ms:,} ms"]
        if self.size_bytes is not None:
            parts.append(f"{self.size_bytes / 1e6:,.2f} MB")
        for source in self.sources:
            parts.append(f"{', '.join(source.topics) or 'no topic yet'} {source.behind:,} behind")
        return "; ".join(parts)


def batch(progress: "StreamingQueryProgress") -> BatchProgress:
    """Returns what one of Spark's progress reports says about topics."""
    return BatchProgress(
        progress.name or str(progress.id)[:8],
        progress.batchId,
        progress.batchDuration,
        tuple(_source_progress(progress.sources)),
        _bytes_by_frame(progress.observedMetrics),
    )


def counting_bytes(frame: "DataFrame", name: str) -> "DataFrame":
    """Returns the frame with an observation `barnabas.bytes.<name>` of the bytes it has.

    Use it right after `load()`. If keys or values have a format, set the option `includeSize`:
    only the source knows their bytes before decoding.
    """
    from pyspark.sql.functions import coalesce, col, lit, octet_length
    from pyspark.sql.functions import sum as total

    types = dict(frame.dtypes)
    if "size" in types:
        size = col("size")
    elif {types.get("key"), types.get("value")} <= {"binary", "string"}:
        size = sum((coalesce(octet_length(column), lit(0)) for column in ("key", "value")), lit(0))
    else:
        raise ValueError(
            f"Bytes of {name!r} cannot be counted: set the source's option includeSize to true."
        )
    return frame.observe(BYTES_PREFIX + name, coalesce(total(size), lit(0)).alias("bytes"))


class ProgressLines(StreamingQueryListener):
    """Prints a line for each micro-batch with rows, and when a query starts, is idle and ends."""

    def __init__(self, print_line: Callable[[str], object] = print) -> None:
        self._print = print_line
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        name = event.name or str(event.id)[:8]
        self._names[str(event.runId)] = name
        self._print(f"{name} started")

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        progress = batch(event.progress)
        if progress.rows:
            self._print(str(progress))

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        since = datetime.fromisoformat(event.timestamp)
        self._print(f"{self._names.get(str(event.runId), 'a query')} is idle since {since:%X}")

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        name = self._names.pop(str(event.runId), "a query")
        if event.exception is None:
            self._print(f"{name} ended")
        else:
            self._print(f"{name} failed: {event.exception.splitlines()[0]}")


def _source_progress(sources: Iterable[Any]) -> Iterable[SourceProgress]:
    for source in sources:
        reached = offsets_in(source.endOffset)
        if reached is None:
            continue
        ends = offsets_in(source.latestOffset) or {}
        lag = {
            partition: max(end - reached.get(partition, 0), 0) for partition, end in ends.items()
        }
        topics = sorted({topic for topic, _ in reached.keys() | ends.keys()})
        yield SourceProgress(tuple(topics), source.numInputRows, source.processedRowsPerSecond, lag)


def offsets_in(text: str | None) -> dict[Partition, int] | None:
    """Parses `{"topic": {"0": 23}}`; returns None for a source with other offsets."""
    try:
        return {
            (topic, int(partition)): int(offset)
            for topic, offsets in json.loads(text or "null").items()
            for partition, offset in offsets.items()
        }
    except (AttributeError, TypeError, ValueError):
        return None


def _bytes_by_frame(observed: Mapping[str, Any]) -> dict[str, int]:
    return {
        name.removeprefix(BYTES_PREFIX): row["bytes"]
        for name, row in observed.items()
        if name.startswith(BYTES_PREFIX)
    }
