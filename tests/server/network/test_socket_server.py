"""Limits of connections, idle connections, and draining."""

import asyncio
import errno
import socket

import pytest
from tests.config.conftest import NODE
from tests.server.harness import LIST, Client, Server, on_a_loop, turns

from barnabas.config import BrokerSettings
from barnabas.server.network.acceptor import Acceptor
from barnabas.server.network.socket_server import SocketServerSettings
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.configs import ListConfigResourcesRequest, ListConfigResourcesResponse

REQUEST = (ListConfigResourcesRequest(), 1, 7)
SECOND_NS = 1_000_000_000


async def respond(_: ListConfigResourcesRequest, __: RequestContext) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse()


class Barrier:
    """Suspends every request until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.get_running_loop().create_future()
        self.begun = 0

    async def handle(
        self, _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        self.begun += 1
        await self.opened
        return ListConfigResourcesResponse()


# Limits


@on_a_loop
async def test_a_host_may_have_only_so_many_connections() -> None:
    server = Server({LIST: respond}, max_connections_per_ip=2, per_ip_overrides={"10.0.0.9": 3})
    clients = [server.connect("10.0.0.1") for _ in range(3)]
    assert await clients[2].is_closed()
    others = [server.connect("10.0.0.9") for _ in range(4)]
    assert await others[3].is_closed()
    assert len(server.network) == 5
    clients[0].socket.close()
    await turns()
    replacement = server.connect("10.0.0.1")
    await replacement.send(REQUEST)
    await replacement.receive(LIST, 1)


@on_a_loop
async def test_no_client_is_accepted_beyond_max_connections_until_one_disconnects() -> None:
    server = Server({LIST: respond}, max_connections=1)
    listener = server.network.listen("PLAINTEXT", "127.0.0.1", 0)
    server.network.open()
    first, second = await dial(listener.port), await dial(listener.port)
    await first.send(REQUEST)
    await first.receive(LIST, 1)
    await second.send(REQUEST)
    await turns()
    assert len(server.network) == 1
    first.socket.close()
    await second.receive(LIST, 1)
    await server.network.drain(0)


@on_a_loop
async def test_raising_max_connections_accepts_the_waiting_clients() -> None:
    server = Server({LIST: respond}, max_connections=1)
    listener = server.network.listen("PLAINTEXT", "127.0.0.1", 0)
    server.network.open()
    first, second = await dial(listener.port), await dial(listener.port)
    await first.send(REQUEST)
    await second.send(REQUEST)
    await first.receive(LIST, 1)
    server.network.settings = SocketServerSettings(max_connections=2)
    await second.receive(LIST, 1)
    await server.network.drain(0)


@on_a_loop
async def test_a_listener_has_a_limit_of_its_own() -> None:
    server = Server({LIST: respond}, listener_max_connections={"external": 1})
    external = server.network.listen("EXTERNAL", "127.0.0.1", 0)
    internal = server.network.listen("INTERNAL", "127.0.0.1", 0)
    server.network.open()
    clients = [await dial(external.port), await dial(external.port), await dial(internal.port)]
    for client in clients:
        await client.send(REQUEST)
    await clients[0].receive(LIST, 1)
    await clients[2].receive(LIST, 1)
    assert server.network.is_full("EXTERNAL")
    assert not server.network.is_full("INTERNAL")
    clients[0].socket.close()
    await clients[1].receive(LIST, 1)
    await server.network.drain(0)


@on_a_loop
async def test_a_broker_takes_the_place_of_the_client_that_was_idle_longest() -> None:
    server = Server({LIST: respond}, max_connections=2, protected_listener="INTERNAL")
    external = server.network.listen("EXTERNAL", "127.0.0.1", 0)
    internal = server.network.listen("INTERNAL", "127.0.0.1", 0)
    server.network.open()
    clients = []
    for _ in range(2):
        clients.append(await dial(external.port))
        await clients[-1].send(REQUEST)
        await clients[-1].receive(LIST, 1)
    assert server.network.is_full("EXTERNAL")
    broker = await dial(internal.port)
    await broker.send(REQUEST)
    await broker.receive(LIST, 1)
    assert await clients[0].is_closed()
    await clients[1].send(REQUEST)
    await clients[1].receive(LIST, 1)
    await server.network.drain(0)


@on_a_loop
async def test_a_listener_accepts_no_more_clients_a_second_than_its_rate() -> None:
    delays_ms = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Acceptor, "_delay", lambda _, delay_ms: delays_ms.append(delay_ms))
        server = Server({LIST: respond}, listener_creation_rates={"external": 1})
        listener = server.network.listen("EXTERNAL", "127.0.0.1", 0)
        server.network.open()
        for _ in range(11):
            client = await dial(listener.port)
            await client.send(REQUEST)
            await client.receive(LIST, 1)
        await turns()
        assert len(delays_ms) == 1
        assert 0 < delays_ms[0] <= 1000
        await server.network.drain(0)


@on_a_loop
async def test_a_delayed_listener_accepts_nothing_until_the_delay_is_over() -> None:
    server = Server({LIST: respond})
    listener = server.network.listen("EXTERNAL", "127.0.0.1", 0)
    server.network.open()
    listener._delay(3_600_000)
    client = await dial(listener.port)
    await client.send(REQUEST)
    listener.resume()
    await turns()
    assert len(server.network) == 0
    listener._end_delay()
    await client.receive(LIST, 1)
    await server.network.drain(0)


@on_a_loop
async def test_an_address_over_its_rate_is_held_and_closed() -> None:
    server = Server({LIST: respond})
    quota = {"connection_creation_rate": 1.0}
    server.network.connection_quotas.set_ip_quotas({(("ip", "10.0.0.1"),): quota})
    clients = [server.connect("10.0.0.1") for _ in range(11)]
    assert len(server.network) == 10
    (held,) = server.network._held
    await clients[10].send(REQUEST)
    await turns()
    server.network._close_held(held)
    assert await clients[10].is_closed()
    assert server.connect("10.0.0.2").connection is not None
    server.network.close()


def test_limits_of_listeners_are_read_from_the_settings() -> None:
    properties = {
        **NODE,
        "listener.name.plaintext.max.connections": "7",
        "listener.name.plaintext.max.connection.creation.rate": "8",
        "max.connection.creation.rate": "9",
        "quota.window.num": "5",
    }
    settings = SocketServerSettings.of(BrokerSettings.from_properties(properties))
    assert settings.listener_max_connections == {"plaintext": 7}
    assert settings.listener_creation_rates == {"plaintext": 8}
    assert settings.max_creation_rate == 9
    assert settings.quota_window == (5, 1000)
    assert settings.protected_listener == "PLAINTEXT"


# Listening


async def dial(port: int) -> Client:
    sock = socket.socket()
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    return Client(sock, None)


@on_a_loop
async def test_port_0_selects_a_free_port() -> None:
    server = Server({LIST: respond})
    listener = server.network.listen("INTERNAL", "", 0)
    server.network.open()
    assert listener.port > 0
    client = await dial(listener.port)
    await client.send(REQUEST)
    await client.receive(LIST, 1)
    (connection,) = server.network._connections
    assert connection.listener == "INTERNAL"
    assert connection.host == "127.0.0.1"
    await server.network.drain(0)


@on_a_loop
async def test_a_taken_port_is_named_in_the_error() -> None:
    server = Server({LIST: respond})
    taken = server.network.listen("FIRST", "127.0.0.1", 0)
    with pytest.raises(OSError, match=f"SECOND cannot bind 127.0.0.1:{taken.port}") as caught:
        server.network.listen("SECOND", "127.0.0.1", taken.port)
    assert caught.value.errno == errno.EADDRINUSE
    await server.network.drain(0)


# Idle connections


class ManualClock:
    """A monotonic clock that the test advances."""

    def __init__(self) -> None:
        self.now_ns = 1

    def __call__(self) -> int:
        return self.now_ns


@on_a_loop
async def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    gate = Barrier()
    clock = ManualClock()
    server = Server({LIST: gate.handle}, now_ns=clock, idle_ms=1000)
    idle, busy, active = (server.connect() for _ in range(3))
    await busy.send(REQUEST)
    await turns()
    assert server.network.close_idle() == 0
    clock.now_ns += 2 * SECOND_NS
    await active.send_bytes(b"\0")
    await turns()
    assert server.network.close_idle() == 1
    assert await idle.is_closed()
    gate.opened.set_result(None)
    await busy.receive(LIST, 1)
    assert not active.connection.is_closed


@on_a_loop
async def test_a_connection_expires_by_the_clock_of_the_node_not_by_the_machines() -> None:
    clock = ManualClock()
    server = Server({LIST: respond}, now_ns=clock, idle_ms=1)
    server.network.open()
    client = server.connect()
    assert server.network.close_idle() == 0  # however long the machine took to come here
    clock.now_ns += SECOND_NS
    assert await client.is_closed()
    await server.network.drain(0)


@on_a_loop
async def test_idle_connections_are_closed_periodically() -> None:
    server = Server({LIST: respond}, idle_ms=1)
    server.network.listen("PLAINTEXT", "127.0.0.1", 0)
    server.network.open()
    assert await server.connect().is_closed()
    await server.network.drain(0)


# Draining


@on_a_loop
async def test_draining_responds_to_requests_in_flight_and_accepts_no_clients() -> None:
    gate = Barrier()
    server = Server({LIST: gate.handle})
    listener = server.network.listen("PLAINTEXT", "127.0.0.1", 0)
    server.network.open()
    idle, busy = server.connect(), server.connect()
    await busy.send(REQUEST, REQUEST)
    await turns()
    draining = asyncio.ensure_future(server.network.drain(60_000))
    assert await idle.is_closed()
    with pytest.raises(ConnectionRefusedError):
        await dial(listener.port)
    assert not draining.done()
    gate.opened.set_result(None)
    for _ in range(2):
        assert (await busy.receive(LIST, 1))[0] == 7
    assert await busy.is_closed()
    await draining
    assert gate.begun == 2
    assert len(server.network) == 0


@on_a_loop
async def test_draining_ends_at_its_timeout() -> None:
    server = Server({LIST: Barrier().handle})
    client = server.connect()
    await client.send(REQUEST)
    await turns()
    await server.network.drain(1)
    assert await client.is_closed()
    assert len(server.network) == 0


@on_a_loop
async def test_draining_releases_delayed_requests_at_once() -> None:
    async def park(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        await context.broker.purgatory.delay(["p"], 60_000, lambda *_: False, "Fetch")
        return ListConfigResourcesResponse()

    server = Server({LIST: park})
    client = server.connect()
    await client.send(REQUEST)
    await turns()
    await server.network.drain(60_000)
    assert (await client.receive(LIST, 1))[0] == 7


# Settings


def test_settings_have_kafkas_names() -> None:
    from barnabas.config import BrokerSettings

    settings = BrokerSettings.from_properties(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.quorum.voters": "1@localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "max.connections.per.ip.overrides": "10.0.0.1:5,10.0.0.2:6",
            "queued.max.requests": "50",
        }
    )
    network = SocketServerSettings.of(settings)
    assert network.per_ip_overrides == {"10.0.0.1": 5, "10.0.0.2": 6}
    assert network.queued_max_requests == 50
    assert network.request_max_bytes == 104857600
    assert network.receiving_limit_bytes > network.request_max_bytes
