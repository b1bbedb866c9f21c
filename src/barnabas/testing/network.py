"""A network between the nodes of a cluster on one machine, whose links a test can cut.

Every node has a name, and every node resolves it to an address of its own: where node 1 says
`node-2`, it reaches 127.77.1.2, which leads to node 2. So it is known who talks to whom, and what
one node sends to another can be held up in one direction, whoever opened the connection.

What is held up is not lost: as TCP sends again, it arrives when the link is whole again, even if
the sender has meanwhile given up. While a link is cut, connections over it seem to be made and
nothing comes back. A node whose process is gone refuses connections.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from barnabas.testing.ports import LOOPBACK

CHUNK_BYTES = 65_536
ABORT_ON_CLOSE = struct.pack("ii", 1, 0)


class Network:
    """Links between nodes that listen on loopback ports: `ports` by node."""

    def __init__(self, ports: Mapping[int, Sequence[int]]) -> None:
        self._ports = ports
        self._ways = {pair: Way() for pair in permutations(ports, 2)}
        self._doors = {
            (source, target, port): Door(address(source, target), port, self._ways, source, target)
            for source, target in permutations(ports, 2)
            for port in ports[target]
        }
        self._is_up = dict.fromkeys(ports, False)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            self._call(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def hosts(self, source: int) -> str:
        """The hosts file of a node."""
        lines = [f"{LOOPBACK} localhost", f"{LOOPBACK} {name(source)}"]
        lines += [
            f"{address(source, target)} {name(target)}"
            for target in self._ports
            if target != source
        ]
        return "\n".join(lines) + "\n"

    def is_up(self, node: int, up: bool) -> None:
        """Tell whether a node's process is there: if not, connections to it are refused."""
        self._is_up[node] = up
        self._call(self._open_and_close_doors())

    def cut(self, ways: Iterable[tuple[int, int]]) -> None:
        """Hold up what the first of each pair sends to the second."""
        self._call(self._set_ways(ways, is_cut=True))

    def heal(self, ways: Iterable[tuple[int, int]]) -> None:
        self._call(self._set_ways(ways, is_cut=False))

    def delay(self, ways: Iterable[tuple[int, int]], delay_s: float) -> None:
        for pair in ways:
            self._ways[pair].delay_s = delay_s

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _set_ways(self, ways: Iterable[tuple[int, int]], *, is_cut: bool) -> None:
        for pair in ways:
            if is_cut:
                self._ways[pair].is_open.clear()
            else:
                self._ways[pair].is_open.set()
        await self._open_and_close_doors()

    async def _open_and_close_doors(self) -> None:
        for (source, target, _), door in self._doors.items():
            is_whole = self._ways[source, target].is_open.is_set()
            is_whole &= self._ways[target, source].is_open.is_set()
            # Over a cut link nobody can tell that there is nobody to connect to.
            if self._is_up[target] or not is_whole:
                door.open()
            else:
                door.close()

    async def _close(self) -> None:
        for door in self._doors.values():
            door.close()
            door.drop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def name(node: int) -> str:
    return f"node-{node}"


def address(source: int, target: int) -> str:
    return f"127.77.{source}.{target}"


@dataclass(slots=True)
class Way:
    """What one node sends to another, over whichever connection."""

    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    delay_s: float = 0

    def __post_init__(self) -> None:
        self.is_open.set()

    async def pump(self, incoming: socket.socket, outgoing: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            chunk = await loop.sock_recv(incoming, CHUNK_BYTES)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            await self.is_open.wait()
            if not chunk:
                outgoing.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(outgoing, chunk)


class Door:
    """Where one node reaches a port of another."""

    def __init__(
        self,
        host: str,
        port: int,
        ways: Mapping[tuple[int, int], Way],
        source: int,
        target: int,
    ) -> None:
        self._address = (host, port)
        self._there = ways[source, target]
        self._back = ways[target, source]
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._passing: dict[asyncio.Task[None], socket.socket] = {}

    def open(self) -> None:
        if self._listening is None:
            self._listening = socket.create_server(self._address, backlog=128)
            self._listening.setblocking(False)
            self._accepting = asyncio.create_task(self._accept(self._listening))

    def close(self) -> None:
        """Refuse connections; those that are there go on."""
        if self._listening is not None and self._accepting is not None:
            self._accepting.cancel()
            self._listening.close()
            self._listening = None

    def drop(self) -> None:
        for task, caller in self._passing.items():
            task.cancel()
            caller.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            caller, _ = await asyncio.get_running_loop().sock_accept(listening)
            task = asyncio.create_task(self._pass(caller))
            self._passing[task] = caller
            task.add_done_callback(self._passing.pop)

    async def _pass(self, caller: socket.socket) -> None:
        """Connect as if the caller had, and carry bytes both ways until either end is gone."""
        loop = asyncio.get_running_loop()
        called = socket.socket()
        for end in caller, called:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._there.is_open.wait()
            await self._back.is_open.wait()
            await loop.sock_connect(called, (LOOPBACK, self._address[1]))
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._there.pump(caller, called))
                pumps.create_task(self._back.pump(called, caller))
        except* OSError:
            for end in caller, called:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT_ON_CLOSE)
        finally:
            caller.close()
            called.close()
