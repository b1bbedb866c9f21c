"""The handler's part in a fetch that waits in the lane, once something in it is not plain."""

import asyncio
from collections.abc import Hashable

from barnabas.replication import Partition
from barnabas.security.quotas.client_quotas import RateQuota
from barnabas.server.api.fetch import finish_wait, respond
from barnabas.server.errors import error_of
from barnabas.server.fetching.fetch_reader import aborted_transactions_of, create_fetch_reader
from barnabas.server.fetching.fetch_session import SessionPartition
from barnabas.server.fetching.session_cache import ContextKind, FetchContext
from barnabas.server.lanes._fetch_reads import PlainFetch
from barnabas.server.lanes._fetch_request import PartitionRead, PlainFetchRequest
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.request_context import RequestContext
from barnabas.wire._cursor import Sink
from barnabas.wire.error_response import error_counter, error_response
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from barnabas.wire.outgoing import Outgoing


class FetchHandover:
    """Gives the handler what the lane has read so far. The handler then reads and responds."""

    __slots__ = (
        "_context",
        "_count_errors",
        "_fetch",
        "_partitions",
        "_quota",
        "_reader",
        "_request",
        "_task",
    )

    def __init__(
        self,
        plain: PlainFetch,
        quota: RateQuota | None,
        body: bytes,
        context: RequestContext,
        metrics: RequestMetrics,
    ) -> None:
        self._context = context
        self._quota = quota
        self._count_errors = error_counter(FetchResponse, metrics.errors)
        self._request, _ = FetchRequest.read(memoryview(body), context.api_version)
        self._task: asyncio.Task[FetchResponse] | None = None
        self._partitions = {
            key: read.requested or _session_partition(plain.request, read)
            for key, read in plain.results.items()
        }
        """The partitions that were read, by what the lane calls them."""
        self._fetch = self._fetch_context(plain.request)
        self._reader = create_fetch_reader(self._request, self._fetch, context)
        self._reader.continue_from(
            {self._partitions[key]: _result_of(read) for key, read in plain.results.items()},
            {self._partitions[key]: read.counted_bytes for key, read in plain.results.items()},
            max_bytes=plain.request.max_bytes,
            min_bytes=plain.request.min_bytes,
            generation=plain.request.generation,
            is_complete=plain.is_complete,
        )
        self._reader.watched_keys()

    @property
    def is_complete(self) -> bool:
        return self._reader.is_complete or self._reader.has_cold_reads

    def read_again(self, key: Partition | SessionPartition) -> None:
        """Reads a partition that has changed."""
        requested = key if isinstance(key, SessionPartition) else self._partitions[key]
        self._reader.read_again(requested)

    def on_change(self, key: Hashable, readable_bytes: int) -> bool:
        """Reads what has changed; returns whether the fetch is complete."""
        return self._reader.on_change(key, readable_bytes)

    def write(self, sink: Sink) -> "int | asyncio.Task[FetchResponse]":
        """Writes the response, which begins with the throttle time; or returns a future to wait for
        before."""
        if self._task is None:
            self._reader.read_dirty()
            return self.finish()
        response = self._task.result()
        out = Outgoing()
        response.writer(self._context.api_version)(response, out)
        start = 0
        for position, region in out.regions:
            sink.raw(out[start:position])
            sink.region(region)
            start = position
        sink.raw(out[start:])
        self._count_errors(response)
        return 0

    def finish(self) -> "asyncio.Task[FetchResponse]":
        """Starts to finish the fetch, which may have to read from disk."""
        self._task = asyncio.get_running_loop().create_task(self._respond())
        return self._task

    async def _respond(self) -> FetchResponse:
        context = self._context
        try:
            await finish_wait(self._reader, context)
            return respond(self._reader, self._fetch, self._quota, context)
        except Exception as failure:
            code, message = error_of(failure, "Fetch", context)
            response = error_response(self._request, context.api_version, code, message)
            assert isinstance(response, FetchResponse)
            return response

    def _fetch_context(self, request: PlainFetchRequest) -> FetchContext:
        sessions, session = self._context.broker.fetch_sessions, request.session
        version = self._context.api_version
        if session is None:
            partitions = {requested.key: requested for requested in self._partitions.values()}
            return FetchContext(
                ContextKind.SESSIONLESS, sessions, partitions, self._request, version
            )
        fetch = FetchContext(
            ContextKind.INCREMENTAL, sessions, session.partitions, self._request, version, session
        )
        fetch.expected_epoch = request.next_epoch
        return fetch


def _session_partition(request: PlainFetchRequest, read: PartitionRead) -> SessionPartition:
    """Returns the partition of a fetch without a session as the handler has it."""
    topic = FetchTopic(topic_id=read.name) if request.by_id else FetchTopic(topic=read.name)
    partition = FetchPartition(
        partition=read.index,
        current_leader_epoch=read.leader_epoch,
        fetch_offset=read.offset,
        last_fetched_epoch=read.last_fetched_epoch,
        log_start_offset=read.log_start_offset,
        partition_max_bytes=read.max_bytes,
    )
    requested = SessionPartition((read.name, read.index), topic, partition)
    requested.partition = read.partition
    return requested


def _result_of(read: PartitionRead) -> PartitionData:
    aborted = read.aborted_transactions
    return PartitionData(
        partition_index=read.index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.stable_offset,
        log_start_offset=read.start_offset,
        aborted_transactions=None if aborted is None else aborted_transactions_of(aborted),
        records=b"" if read.records is None else read.records,
    )
