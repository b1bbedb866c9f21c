"""Fetches the ranges of one task on the clients' event loop, for the task's thread."""

import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from barnabas.client.consumer.range_reader import FetchedRange, RangeReader, RangeReadError
from barnabas.client.errors import KafkaException
from barnabas.spark.source.connection import ClusterConnection, SourceError
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange

Fetched = FetchedRange[OffsetRange]


class RangeFetcher:
    """An iterator over fetched ranges, a list for each response; `close` ends it early."""

    def __init__(
        self,
        connection: ClusterConnection,
        ranges: Sequence[OffsetRange],
        data_loss_policy: DataLossPolicy,
    ) -> None:
        self._connection = connection
        self._fetched: queue.SimpleQueue[list[Fetched] | None] = queue.SimpleQueue()
        self._reader: RangeReader[OffsetRange] | None = None
        self._done: Future[None] = connection.thread.submit(self._read(ranges, data_loss_policy))

    def __iter__(self) -> Iterator[list[Fetched]]:
        while (fetched := self._fetched.get()) is not None:
            size_bytes = sum(len(entry.fetched.batches) for entry in fetched)
            yield fetched
            assert self._reader is not None, "the reader has fetched this"
            self._connection.thread.call(self._reader.on_consumed, size_bytes)
        try:
            self._done.result()
        except RangeReadError as error:
            raise SourceError(str(error)) from None
        except KafkaException as error:
            raise SourceError(self._connection.reason(error)) from None

    @property
    def is_idle(self) -> bool:
        """Whether the next response has not arrived yet."""
        return self._fetched.empty()

    def close(self) -> None:
        self._done.cancel()

    async def _read(self, ranges: Sequence[OffsetRange], data_loss_policy: DataLossPolicy) -> None:
        """Reads every range to its end; None follows the last response."""
        cluster, settings = self._connection.cluster, self._connection.settings
        try:
            self._reader = RangeReader(
                cluster, settings, ranges, data_loss_policy, self._fetched.put
            )
            await self._reader.run()
        finally:
            self._fetched.put(None)
