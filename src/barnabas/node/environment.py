"""The environment of a node: time, randomness, files, threads, network. Simulations replace it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from time import perf_counter_ns
from typing import TypeVar

from barnabas.log import OpenFiles
from barnabas.net import SocketPeers
from barnabas.net.connection_options import PeerSecurity
from barnabas.net.tls import TlsContext
from barnabas.server.network._clock import wall_clock_ms
from barnabas.server.network.socket_server import SocketServer
from barnabas.wire.uuid import random_uuid

CONNECT_TIMEOUT_S = 5.0
DISK_THREADS = 4

T = TypeVar("T")


async def hold_connection(host: str, port: int, tls: TlsContext | None = None) -> None:
    """Connects, and returns when the connection breaks. Raises OSError if it cannot connect."""
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        reader, writer = await _connect(host, port, tls)
    try:
        with suppress(OSError):
            await reader.read()  # a node sends nothing without a request: this is the end
    finally:
        writer.close()


class DiskThreads:
    """A few threads for work that blocks on the disk and releases the GIL."""

    __slots__ = ("_executor", "_loop", "_pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(DISK_THREADS, thread_name_prefix="disk")
        self._pending: set[asyncio.Future[object]] = set()

    def run(
        self, work: Callable[[], object], on_done: Callable[[BaseException | None], None]
    ) -> None:
        """Runs `work` in a thread, then calls `on_done` on the loop with the exception, if any."""
        future = self._loop.run_in_executor(self._executor, work)
        self._pending.add(future)

        def ended(future: asyncio.Future[object]) -> None:
            self._pending.discard(future)
            on_done(future.exception())

        future.add_done_callback(ended)

    async def call(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread and returns its result."""
        return await self._loop.run_in_executor(self._executor, work)

    async def close(self) -> None:
        """Waits for running work to end."""
        while self._pending:
            await asyncio.wait(self._pending)
        self._executor.shutdown()


@dataclass(slots=True, frozen=True)
class Environment:
    """Clock, randomness, files, disk threads, and the network in both directions."""

    clock: Callable[[], int] = wall_clock_ms
    monotonic_ns: Callable[[], int] = perf_counter_ns
    random: Random = field(default_factory=Random)
    files: Callable[[], OpenFiles] = OpenFiles
    threads: "Callable[[asyncio.AbstractEventLoop], DiskThreads]" = DiskThreads
    peers: Callable[[asyncio.AbstractEventLoop, str, PeerSecurity], SocketPeers] = SocketPeers
    network: Callable[..., SocketServer] = SocketServer
    hold_connection: Callable[[str, int, TlsContext | None], Awaitable[None]] = hold_connection

    def random_uuid(self) -> bytes:
        return random_uuid(self.random.randbytes)


async def _connect(
    host: str, port: int, tls: TlsContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to the first address that accepts; refused only if all addresses refuse."""
    failures: list[OSError] = []
    loop = asyncio.get_running_loop()
    for *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return await asyncio.open_connection(
                str(address[0]),
                port,
                ssl=None if tls is None else tls.context,
                server_hostname=None if tls is None else host,
            )
        except OSError as failure:
            failures.append(failure)
    raise next((f for f in failures if not isinstance(f, ConnectionRefusedError)), failures[0])
