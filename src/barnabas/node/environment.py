"""The environment of a node: time, randomness, files, threads, network. Simulations replace it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import perf_counter_ns

from barnabas.log import OpenFiles
from barnabas.net import SocketPeers
from barnabas.node.disk_threads import DiskThreads
from barnabas.server.nodes import wall_clock_ms
from barnabas.server.network.socket_server import SocketServer
from barnabas.wire.uuid import random_uuid

CONNECT_TIMEOUT_S = 5.0


async def hold_connection(host: str, port: int) -> None:
    """Connects, and returns when the connection breaks. Raises OSError if it cannot connect."""
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        reader, writer = await _connect(host, port)
    try:
        with suppress(OSError):
            await reader.read()  # a node sends nothing without a request: this is the end
    finally:
        writer.close()


@dataclass(slots=True, frozen=True)
class Environment:
    """Clock, randomness, files, disk threads, and the network in both directions."""

    clock: Callable[[], int] = wall_clock_ms
    monotonic_ns: Callable[[], int] = perf_counter_ns
    random: Random = field(default_factory=Random)
    files: Callable[[], OpenFiles] = OpenFiles
    threads: Callable[[asyncio.AbstractEventLoop], DiskThreads] = DiskThreads
    peers: Callable[[asyncio.AbstractEventLoop, str], SocketPeers] = SocketPeers
    network: Callable[..., SocketServer] = SocketServer
    hold_connection: Callable[[str, int], Awaitable[None]] = hold_connection

    def random_uuid(self) -> bytes:
        return random_uuid(self.random.randbytes)


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to the first address that accepts; refused only if all addresses refuse."""
    failures: list[OSError] = []
    loop = asyncio.get_running_loop()
    for *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return await asyncio.open_connection(str(address[0]), port)
        except OSError as failure:
            failures.append(failure)
    raise next((f for f in failures if not isinstance(f, ConnectionRefusedError)), failures[0])
