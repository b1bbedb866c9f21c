"""What a node meets outside of itself. A simulation gives it another world."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from barnabas.log import OpenFiles
from barnabas.net import SocketPeers
from barnabas.node.background import Threads
from barnabas.server.broker import wall_clock_ms
from barnabas.server.network import Network
from barnabas.wire.uuid import random_uuid

CONNECT_TIMEOUT_S = 5.0


async def hold_connection(host: str, port: int) -> None:
    """Connect, and return when the connection breaks; OSError if there is none to be had."""
    async with asyncio.timeout(CONNECT_TIMEOUT_S):
        reader, writer = await _connect(host, port)
    try:
        with suppress(OSError):
            await reader.read()  # a node says nothing unless it is asked: this is its end
    finally:
        writer.close()


@dataclass(slots=True, frozen=True)
class Surroundings:
    """Time, chance, disks and their threads, and the network in both directions."""

    clock: Callable[[], int] = wall_clock_ms
    random: Random = field(default_factory=Random)
    files: Callable[[], OpenFiles] = OpenFiles
    threads: Callable[[asyncio.AbstractEventLoop], Threads] = Threads
    peers: Callable[[asyncio.AbstractEventLoop, str], SocketPeers] = SocketPeers
    network: Callable[..., Network] = Network
    hold_connection: Callable[[str, int], Awaitable[None]] = hold_connection

    def random_uuid(self) -> bytes:
        return random_uuid(self.random.randbytes)


async def _connect(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """By the first of a name's addresses that accepts; refused only if all of them refuse."""
    failures: list[OSError] = []
    loop = asyncio.get_running_loop()
    for *_, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        try:
            return await asyncio.open_connection(str(address[0]), port)
        except OSError as failure:
            failures.append(failure)
    others = [each for each in failures if not isinstance(each, ConnectionRefusedError)]
    raise (others or failures)[0]
