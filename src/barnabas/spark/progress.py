"""What a running query says about its topics: rows, bytes, and how far it is behind.

    spark.streams.addListener(ProgressLines())

Spark reports offsets and rows of every source by itself, and lag follows from the offsets. It
lets no source written in Python add figures of its own: bytes are in its reports once
`counting_bytes` has them observed.
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

BYTES = "barnabas.bytes."
"""How the names of observations begin that count bytes; the name of the frame follows."""

Partition = tuple[str, int]


@dataclass(slots=True, frozen=True)
class SourceProgress:
    """What a micro-batch took from one source, and what it left there."""

    topics: tuple[str, ...]
    rows: int
    rows_per_s: float
    """While the batch ran."""
    lag: Mapping[Partition, int]
    """Records that were there and not taken yet; empty where Spark was not told of any end."""

    @property
    def behind(self) -> int:
        """Over all partitions."""
        return sum(self.lag.values())


@dataclass(slots=True, frozen=True)
class BatchProgress:
    """What a query did last."""

    query: str
    number: int
    duration_ms: int
    readings: tuple[SourceProgress, ...]
    """Of its sources that are topics, whichever connector reads them."""
    bytes_by_frame: Mapping[str, int]
    """Of the frames whose bytes are counted, by the names they were given."""

    @property
    def size_bytes(self) -> int | None:
        """Over all frames; None where nothing counts them."""
        return sum(self.bytes_by_frame.values()) if self.bytes_by_frame else None

    @property
    def rows(self) -> int:
        return sum(reading.rows for reading in self.readings)

    @property
    def behind(self) -> int:
        return sum(reading.behind for reading in self.readings)

    def __str__(self) -> str:
        parts = [f"{self.query} batch {self.number}: {self.rows:,} rows in {self.duration_ms:,} ms"]
        if self.size_bytes is not None:
            parts.append(f"{self.size_bytes / 1e6:,.2f} MB")
        for reading in self.readings:
            parts.append(f"{', '.join(reading.topics) or 'no topic yet'} {reading.behind:,} behind")
        return "; ".join(parts)


def batch(progress: "StreamingQueryProgress") -> BatchProgress:
    """What one of Spark's reports says about topics."""
    return BatchProgress(
        progress.name or str(progress.id)[:8],
        progress.batchId,
        progress.batchDuration,
        tuple(_readings(progress.sources)),
        _bytes_by_frame(progress.observedMetrics),
    )


def counting_bytes(frame: "DataFrame", name: str) -> "DataFrame":
    """The same rows, whose keys and values are counted in Spark's reports.

    As the observation `barnabas.bytes.<name>`: use it right after `load()`. Of keys and values
    that have a format, only the source knows the bytes: ask for them with `includeSize`.
    """
    from pyspark.sql.functions import coalesce, col, lit, octet_length
    from pyspark.sql.functions import sum as total

    kinds = dict(frame.dtypes)
    if "size" in kinds:
        size = col("size")
    elif {kinds.get("key"), kinds.get("value")} <= {"binary", "string"}:
        size = sum((coalesce(octet_length(each), lit(0)) for each in ("key", "value")), lit(0))
    else:
        raise ValueError(
            f"Bytes of {name!r} cannot be counted: set the source's option includeSize to true."
        )
    return frame.observe(BYTES + name, coalesce(total(size), lit(0)).alias("bytes"))


class ProgressLines(StreamingQueryListener):
    """Says a line for each micro-batch that had rows, and when a query begins, idles and ends."""

    def __init__(self, say: Callable[[str], object] = print) -> None:
        self._say = say
        self._names: dict[str, str] = {}

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802
        name = event.name or str(event.id)[:8]
        self._names[str(event.runId)] = name
        self._say(f"{name} begins")

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        done = batch(event.progress)
        if done.rows:
            self._say(str(done))

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        since = datetime.fromisoformat(event.timestamp)
        self._say(f"{self._names.get(str(event.runId), 'a query')} has nothing to do at {since:%X}")

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        name = self._names.pop(str(event.runId), "a query")
        if event.exception is None:
            self._say(f"{name} ended")
        else:
            self._say(f"{name} failed: {event.exception.splitlines()[0]}")


def _readings(sources: Iterable[Any]) -> Iterable[SourceProgress]:
    for source in sources:
        reached = _offsets(source.endOffset)
        if reached is None:
            continue
        ends = _offsets(source.latestOffset) or {}
        lag = {each: max(end - reached.get(each, 0), 0) for each, end in ends.items()}
        topics = sorted({topic for topic, _ in reached.keys() | ends.keys()})
        yield SourceProgress(tuple(topics), source.numInputRows, source.processedRowsPerSecond, lag)


def _offsets(text: str | None) -> dict[Partition, int] | None:
    """Of `{"topic": {"0": 23}}`; None if this is not how the source counts."""
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
        name.removeprefix(BYTES): row["bytes"]
        for name, row in observed.items()
        if name.startswith(BYTES)
    }
