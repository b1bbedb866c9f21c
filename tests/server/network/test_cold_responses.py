"""Responses from disk: they are sent once they are loaded, and nobody else waits for them."""

import asyncio
import gc
import socket
import tempfile
import weakref
from collections.abc import Callable

import pytest
from tests.replication.world import InlineExecutor
from tests.server.harness import LIST, Client, Server, a_list, name_the_client, on_a_loop, turns

from barnabas.log import ColdRead
from barnabas.log.segments.log_slice import SendFile
from barnabas.server.disk_reads import DiskReads
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FETCH = ApiKey.FETCH
VERSION = 12
SMALL_BYTES = 1000
LARGE_BYTES = 500_000
"""More than is copied, and more than a socket takes at once."""


class ColdRegion:
    """Records on disk, of which a load brings `load_bytes` into the page cache."""

    def __init__(self, size_bytes: int, load_bytes: int = 1 << 30) -> None:
        self.size_bytes = size_bytes
        self.content = bytes(number % 251 for number in range(size_bytes))
        self.failure: OSError | None = None
        self._load_bytes = load_bytes
        self._cached_bytes = 0
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - open as long as this
        self._file.write(self.content)

    def __len__(self) -> int:
        return self.size_bytes

    def read_cached(self) -> bytes:
        if self._cached_bytes < self.size_bytes:
            raise ColdRead(self._load)
        return self.content

    def send(self, send_file: SendFile, sent: int, count: int) -> int:
        if sent >= self._cached_bytes:
            raise ColdRead(self._load)
        return send_file(self._file.fileno(), sent, min(count, self._cached_bytes - sent))

    def _load(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._cached_bytes += self._load_bytes


class ColdServer(Server):
    """A server whose Fetch responds with the regions of the test, and whose threads are stepped."""

    def __init__(self, *regions: ColdRegion) -> None:
        super().__init__({FETCH: self._fetch, LIST: name_the_client})
        self._regions = list(regions)
        self.threads = InlineExecutor()
        self.threads.hold()
        self.network.disk_reads = self.broker.disk_reads = DiskReads(self.threads)

    async def _fetch(self, _: FetchRequest, __: RequestContext) -> FetchResponse:
        result = PartitionData(records=self._regions.pop(0))
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[result])])

    @property
    def loads(self) -> list[Callable[[], None]]:
        """The loads that a thread has begun."""
        assert self.threads.held is not None
        return self.threads.held

    async def end_load(self) -> None:
        while not self.loads:
            await turns(1)
        self.loads.pop(0)()
        await turns()


def a_fetch(correlation_id: int) -> tuple[FetchRequest, int, int]:
    return FetchRequest(), VERSION, correlation_id


async def records_of(client: Client, correlation_id: int) -> bytes:
    """Returns the records of the next response, which must be that of a fetch."""
    received, response = await client.receive(FETCH, VERSION)
    assert received == correlation_id
    return bytes(response.responses[0].partitions[0].records)


def has_received(client: Client) -> bool:
    try:
        return bool(client.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


@pytest.mark.parametrize("size_bytes", [SMALL_BYTES, LARGE_BYTES])
@on_a_loop
async def test_a_cold_response_is_sent_when_it_is_loaded(size_bytes: int) -> None:
    region = ColdRegion(size_bytes)
    server = ColdServer(region)
    client = server.connect()
    await client.send(a_fetch(1))
    await turns()
    assert len(server.loads) == 1
    assert client.connection.is_busy
    await server.end_load()
    assert await records_of(client, 1) == region.content
    assert not client.connection.is_busy


@on_a_loop
async def test_other_connections_are_served_during_a_load() -> None:
    server = ColdServer(ColdRegion(SMALL_BYTES))
    waiting, other = server.connect(), server.connect()
    await waiting.send(a_fetch(1))
    await turns()
    await other.send(a_list(2))
    assert (await other.receive(LIST, 1))[0] == 2
    assert not has_received(waiting)
    await server.end_load()
    await records_of(waiting, 1)


@on_a_loop
async def test_later_responses_wait_for_a_load_and_stay_in_order() -> None:
    first, second = ColdRegion(SMALL_BYTES), ColdRegion(LARGE_BYTES)
    server = ColdServer(first, second)
    client = server.connect()
    await client.send(a_fetch(1), a_list(2), a_fetch(3), a_list(4))
    await turns()
    await client.send(a_list(5))
    await turns()
    assert len(server.loads) == 1
    await server.end_load()
    assert await records_of(client, 1) == first.content
    assert (await client.receive(LIST, 1))[0] == 2
    await server.end_load()
    assert await records_of(client, 3) == second.content
    assert [(await client.receive(LIST, 1))[0] for _ in range(2)] == [4, 5]


@on_a_loop
async def test_nothing_more_is_read_from_the_client_during_a_load() -> None:
    server = ColdServer(ColdRegion(SMALL_BYTES), ColdRegion(SMALL_BYTES))
    client = server.connect()
    await client.send(a_fetch(1))
    await turns()
    await client.send(a_fetch(2))
    await turns()
    assert len(server._regions) == 1
    await server.end_load()
    await records_of(client, 1)
    await server.end_load()
    await records_of(client, 2)


@on_a_loop
async def test_a_region_is_sent_as_far_as_it_is_loaded_and_the_socket_takes_it() -> None:
    region = ColdRegion(3_000_000, load_bytes=1_000_000)
    server = ColdServer(region, ColdRegion(SMALL_BYTES))
    client = server.connect()
    client.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    await client.send(a_fetch(1), a_fetch(2))

    async def load() -> None:
        for _ in range(4):
            await server.end_load()

    loading = asyncio.ensure_future(load())
    assert await records_of(client, 1) == region.content
    await records_of(client, 2)
    await loading


@on_a_loop
async def test_a_client_that_disconnects_during_a_load_leaves_nothing_behind() -> None:
    server = ColdServer(ColdRegion(SMALL_BYTES))
    region = weakref.ref(server._regions[0])
    client = server.connect()
    await client.send(a_fetch(1))
    await turns()
    client.connection.close()
    await server.end_load()
    assert len(server.network) == 0
    assert len(server.broker.disk_reads) == 0
    client._served_by = None
    gc.collect()
    assert region() is None


@on_a_loop
async def test_the_load_of_a_client_that_disconnected_is_not_begun() -> None:
    server = ColdServer(*(ColdRegion(SMALL_BYTES) for _ in range(3)))
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        await client.send(a_fetch(1))
        await turns()
    assert len(server.loads) == 2
    clients[2].connection.close()
    for client in clients[:2]:
        await server.end_load()
        await records_of(client, 1)
    assert not server.loads


@on_a_loop
async def test_a_load_that_fails_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    region = ColdRegion(SMALL_BYTES)
    region.failure = OSError(5, "Input/output error")
    server = ColdServer(region)
    client = server.connect()
    await client.send(a_fetch(1))
    await server.end_load()
    assert await client.is_closed()
    assert "Input/output error" in caplog.text


@on_a_loop
async def test_a_shutdown_waits_for_a_load() -> None:
    region = ColdRegion(SMALL_BYTES)
    server = ColdServer(region)
    client = server.connect()
    await client.send(a_fetch(1))
    await turns()
    client.connection.drain()
    await turns()
    assert not client.connection.is_closed
    await server.end_load()
    assert await records_of(client, 1) == region.content
    assert client.connection.is_closed
