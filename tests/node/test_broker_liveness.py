"""A broker that dies is noticed by its sockets.

One that was never reached, or that only hangs up, is not taken for dead.
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


class Listening:
    """Something that listens, holds its connections, and can go away as a process does."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._hold, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _hold(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self.came.set()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()

    def die(self) -> None:
        self._server.close()
        self.hang_up()


@asynccontextmanager
async def a_vigil() -> AsyncIterator[tuple[BrokerLivenessMonitor, "asyncio.Queue[int]"]]:
    died: asyncio.Queue[int] = asyncio.Queue()
    vigil = BrokerLivenessMonitor(1, lambda broker_id, _: died.put_nowait(broker_id))
    yield vigil, died
    vigil.stop()


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
async def test_a_broker_that_hangs_up_and_refuses_connections_has_died(host: str) -> None:
    broker = Listening()
    await broker.start()
    async with a_vigil() as (vigil, died):
        vigil.on_metadata_change(CHANGED, image_with(broker.port, host=host))
        await broker.came.wait()
        broker.die()
        assert await died.get() == 2
        assert vigil.dead_broker_epochs == {2: 5}


@on_a_loop
async def test_a_broker_that_comes_back_is_not_dead() -> None:
    broker = Listening()
    await broker.start()
    async with a_vigil() as (vigil, died):
        vigil.on_metadata_change(CHANGED, image_with(broker.port))
        await broker.came.wait()
        broker.die()
        await died.get()
        vigil.on_metadata_change(CHANGED, image_with(broker.port, fenced=True, epoch=9))
        assert not vigil.dead_broker_epochs


@on_a_loop
async def test_a_broker_that_only_hangs_up_lives() -> None:
    broker = Listening()
    await broker.start()
    async with a_vigil() as (vigil, died):
        vigil.on_metadata_change(CHANGED, image_with(broker.port))
        await broker.came.wait()
        broker.came.clear()
        broker.hang_up()
        await broker.came.wait()
        assert died.empty()
        broker.die()


@on_a_loop
async def test_an_address_that_was_never_reached_says_nothing() -> None:
    nobody = Listening()
    await nobody.start()
    nobody.die()
    async with a_vigil() as (vigil, died):
        vigil.on_metadata_change(CHANGED, image_with(nobody.port))
        for _ in range(20):
            await asyncio.sleep(0)
        assert died.empty()
