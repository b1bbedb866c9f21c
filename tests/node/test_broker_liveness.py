"""A broker whose process died is detected by its sockets.

A broker that was never connected, or that only disconnects, does not count as dead.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.server.harness import on_a_loop

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, ListenerEndpoint
from barnabas.node.broker_liveness import BrokerLivenessMonitor
from barnabas.testing.ports import free_port


class FakeBroker:
    """Listens, keeps its connections open, and can stop as a process does."""

    def __init__(self) -> None:
        self.connected = asyncio.Event()
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self.port = free_port()  # which no other socket gets when it has stopped
        self._server = await asyncio.start_server(self._hold, "127.0.0.1", self.port)

    async def _hold(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self.connected.set()

    def disconnect(self) -> None:
        for writer in self._writers:
            writer.close()

    def stop(self) -> None:
        self._server.close()
        self.disconnect()


@asynccontextmanager
async def a_monitor() -> AsyncIterator[tuple[BrokerLivenessMonitor, "asyncio.Queue[int]"]]:
    died: asyncio.Queue[int] = asyncio.Queue()
    monitor = BrokerLivenessMonitor(1, lambda broker_id, _: died.put_nowait(broker_id))
    yield monitor, died
    monitor.stop()


def image_with(
    port: int, *, host: str = "127.0.0.1", fenced: bool = False, epoch: int = 5
) -> MetadataImage:
    image = MetadataImage()
    endpoint = ListenerEndpoint("PLAINTEXT", host, port, 0)
    image.brokers[2] = BrokerRegistration(2, epoch, b"", (endpoint,), {}, None, fenced, False, ())
    return image


CHANGED = MetadataDelta(brokers_changed={2})


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@on_a_loop
async def test_a_broker_that_disconnects_and_refuses_connections_is_dead(host: str) -> None:
    broker = FakeBroker()
    await broker.start()
    async with a_monitor() as (monitor, died):
        monitor.on_metadata_change(CHANGED, image_with(broker.port, host=host))
        await broker.connected.wait()
        broker.stop()
        assert await died.get() == 2
        assert monitor.dead_broker_epochs == {2: 5}


@on_a_loop
async def test_a_broker_that_registers_again_is_not_dead() -> None:
    broker = FakeBroker()
    await broker.start()
    async with a_monitor() as (monitor, died):
        monitor.on_metadata_change(CHANGED, image_with(broker.port))
        await broker.connected.wait()
        broker.stop()
        await died.get()
        monitor.on_metadata_change(CHANGED, image_with(broker.port, fenced=True, epoch=9))
        assert not monitor.dead_broker_epochs


@on_a_loop
async def test_a_broker_that_only_disconnects_is_alive() -> None:
    broker = FakeBroker()
    await broker.start()
    async with a_monitor() as (monitor, died):
        monitor.on_metadata_change(CHANGED, image_with(broker.port))
        await broker.connected.wait()
        broker.connected.clear()
        broker.disconnect()
        await broker.connected.wait()
        assert died.empty()
        broker.stop()


@on_a_loop
async def test_a_broker_that_was_never_connected_is_not_reported_as_dead() -> None:
    broker = FakeBroker()
    await broker.start()
    broker.stop()
    async with a_monitor() as (monitor, died):
        monitor.on_metadata_change(CHANGED, image_with(broker.port))
        for _ in range(20):
            await asyncio.sleep(0)
        assert died.empty()
