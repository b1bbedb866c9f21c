"""Two equal brokers that get the same Produce requests: one has the lane, the other has not."""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.replication.world import CLIENT, CLIENT_HOST, LISTENER, World
from tests.server.lanes.two_brokers import quotas_of

from barnabas.server.api import HANDLERS
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import Histogram, RequestMetrics
from barnabas.server.network._pipeline import RequestPipeline, RequestSource
from barnabas.server.network._response_queue import ResponseQueue
from barnabas.server.network.routes import RouteTable
from barnabas.server.nodes import BrokerNode
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.headers import RequestHeader, write_request_header
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.outgoing import Outgoing

LaneFactory = Callable[[BrokerNode, RequestMetrics], Lane]

PRODUCE = "Produce"
FOLLOWER = 2


class RecordingConnection(RequestSource):
    """A connection that keeps its responses, and why it was closed."""

    def __init__(self) -> None:
        self._sockets = socket.socketpair()
        super().__init__(ResponseQueue(self._sockets[0]))
        self.principal = CLIENT
        self.host = CLIENT_HOST
        self.local_host = "127.0.0.1"
        self.listener = LISTENER
        self.received_ns = 1
        self.is_closed = False
        self.close_reason: str | None = None
        self.suspended: list[Any] = []
        self.delays_ms: list[int] = []

    def add_suspended(self, request: Any) -> None:
        self.suspended.append(request)

    def remove_suspended(self, request: Any) -> None:
        self.suspended.remove(request)

    def throttle(self, delay_ms: int) -> None:
        self.delays_ms.append(delay_ms)

    def close(self, reason: str | None = None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.close_reason = reason
        for request in tuple(self.suspended):
            request.abandon()
        for sock in self._sockets:
            sock.close()

    def take(self) -> tuple[object, ...]:
        """Returns what a client would notice since the last time."""
        ready = self.responses.ready
        content = bytes(ready)
        del ready[:]
        self.responses.record_sent(1, 1)
        allowed = [request.allows_next_produce for request in self.suspended]
        delays_ms = tuple(self.delays_ms)
        return content, self.responses.pending_count, allowed, self.close_reason, delays_ms


class VerifiedAtOnce:
    """The response of a coordinator that confirms every partition."""

    is_done = True

    def __init__(self, partitions: Sequence[tuple[str, int]]) -> None:
        self._codes = dict.fromkeys(partitions, ErrorCode.NONE)

    def __await__(self) -> Generator[None, None, dict[tuple[str, int], ErrorCode]]:
        return self._codes
        yield


class ConfirmingVerifier:
    def verify_or_add(
        self, _: str, __: int, ___: int, partitions: Sequence[tuple[str, int]], *, add: bool
    ) -> Awaitable[dict[tuple[str, int], ErrorCode]]:
        return VerifiedAtOnce(partitions)


class ProduceBroker:
    """A broker and its pipeline. `handled` counts the requests that the handler got."""

    def __init__(
        self, folder: Path, loop: asyncio.AbstractEventLoop, lane: LaneFactory | None = None
    ) -> None:
        self.world = world = World(folder, disks=2)
        self.handled = 0
        self._loop = loop
        broker = world.broker
        broker.monotonic_ns = lambda: 1  # 0 is that of responses that are not complete
        broker.quotas = RequestQuotas(now_ms=lambda: world.now_ms)
        broker.partition_verifier = ConfirmingVerifier()  # type: ignore[assignment]
        handle = HANDLERS[ApiKey.PRODUCE]

        def counted(request: ProduceRequest, context: RequestContext) -> Any:
            self.handled += 1
            return handle(request, context)

        self.metrics = broker.metrics.request(PRODUCE)
        lanes = {} if lane is None else {ApiKey.PRODUCE: lane(broker, self.metrics)}
        routes = RouteTable(broker.metrics, {ApiKey.PRODUCE: counted}, lanes)
        self._pipeline = RequestPipeline(broker, loop, routes)
        self.connection = RecordingConnection()

    def send(
        self, frame: bytes, failing_write: tuple[int, int] | None = None
    ) -> tuple[object, ...]:
        """Handles a frame, of which one write may fail; returns what the client notices."""
        content = bytearray(frame)
        violation = None
        with pytest.MonkeyPatch.context() as patch, memoryview(content) as view:
            if failing_write is not None:
                patch.setattr(os, "pwrite", _failing(os.pwrite, *failing_write))
            try:
                self.handle(view)
            except ProtocolViolation as error:
                violation = str(error)
        # The memory of a frame is used again as soon as the pipeline returns.
        content[:] = b"\xaa" * len(content)
        return violation, *self.notice()

    def handle(self, frame: memoryview) -> None:
        self.connection.received_ms = self.world.now_ms
        self._pipeline.handle(self.connection, frame)

    def notice(self) -> tuple[object, ...]:
        """Lets the loop run, and returns what the client has got since."""
        for _ in range(3):
            self._loop.run_until_complete(asyncio.sleep(0))
        noticed = tuple(map(self._without_folder, self.connection.take()))
        if self.connection.is_closed:
            self.connection = RecordingConnection()
        return noticed

    def _without_folder(self, noticed: object) -> object:
        """Some errors name a path, which is as long for every broker."""
        path = str(self.world.folder)
        if isinstance(noticed, bytes):
            return noticed.replace(path.encode(), b"*" * len(path))
        return noticed.replace(path, "*") if isinstance(noticed, str) else noticed

    def replicate(self, topic: str) -> None:
        """The follower fetches everything, which acknowledges it."""
        partition = self.world.partition(topic)
        if partition.is_leader and partition.leader_state is not None:
            partition.fetch_as_follower(
                FOLLOWER,
                5,
                partition.log.log_end_offset,
                0,
                log_start_offset=0,
                now_ms=self.world.now_ms,
            )

    def state(self) -> dict[str, object]:
        """Returns everything that requests change."""
        state: dict[str, object] = {
            "requests": self.metrics.requests,
            "errors": {code: count for code, count in self.metrics.errors.items() if count},
            "purgatory": self.world.purgatory.sizes,
            "quotas": quotas_of(self.world.broker),
        }
        for name in dir(self.metrics):
            histogram = getattr(self.metrics, name)
            if isinstance(histogram, Histogram):
                state[name] = (histogram.buckets, histogram.total)
        for topic, metrics in self.world.broker.metrics.topics().items():
            state[f"metrics of {topic}"] = [getattr(metrics, n) for n in metrics.__slots__]
        for partition in self.world.partitions.opened():
            log = partition.log
            state[log.name] = (
                log.log_end_offset,
                partition.high_watermark,
                partition.last_stable_offset,
                [_producer_state(producer) for producer in log.active_producers()],
                partition.is_leader,
            )
        for folder in self.world.paths:
            for path in sorted(folder.glob("*/*.log")):
                state[str(path.relative_to(self.world.folder))] = path.read_bytes()
        return state

    def delays(self) -> list[int]:
        """Returns the channels that wait for each quota."""
        quotas = self.world.broker.quotas
        return [channels.count(quotas.now_ms()) for channels in quotas.delays.values()]

    def close(self) -> None:
        self.connection.close()
        self.notice()
        self.connection.close()
        self.world.partitions.close(clean=False)


def frame_of(request: ProduceRequest, version: int, correlation_id: int = 0) -> bytes:
    """Returns a request without its length, as the pipeline gets it."""
    out = Outgoing()
    write_request_header(RequestHeader(ApiKey.PRODUCE, version, correlation_id, "test"), out)
    return bytes(out) + request.write(version)


def _failing(write: Callable[..., int], number: int, code: int) -> Callable[..., int]:
    """Returns a function that fails with an error code at the call of that number."""
    calls = 0

    def call(*arguments: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == number + 1:
            raise OSError(code, os.strerror(code))
        return write(*arguments)

    return call


def _producer_state(producer: Any) -> tuple[object, ...]:
    return (
        producer.producer_id,
        producer.epoch,
        producer.next_sequence,
        producer.last_timestamp,
        producer.transaction_first_offset,
        tuple(producer.batches),
    )
