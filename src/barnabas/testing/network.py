"""A network between the nodes of a cluster on one machine, whose links a test can cut.

Every node has a name, which each other node resolves to a different address: from node 1, `node-2`
is 127.77.1.2, a proxy to node 2. So source and target of each connection are known, and each
direction can be held up, whichever node opened the connection.

Held-up bytes are not lost: like retransmissions of TCP, they arrive when the link is healed. While
a link is cut, connections seem to be accepted, and no response arrives. A node whose process is
gone refuses connections.
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


class LinkNetwork:
    """Links between nodes; `ports` has the loopback ports of each node."""

    def __init__(self, ports: Mapping[int, Sequence[int]]) -> None:
        self._ports = ports
        self._links = {pair: Link() for pair in permutations(ports, 2)}
        self._proxies = {
            (source, target, port): LinkProxy(
                link_address(source, target), port, self._links, source, target
            )
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

    def hosts_file(self, source: int) -> str:
        """Returns the hosts file of a node."""
        lines = [f"{LOOPBACK} localhost", f"{LOOPBACK} {node_name(source)}"]
        lines += [
            f"{link_address(source, target)} {node_name(target)}"
            for target in self._ports
            if target != source
        ]
        return "\n".join(lines) + "\n"

    def set_node_up(self, node: int, up: bool) -> None:
        """Sets whether the process of a node runs: if not, connections to it are refused."""
        self._is_up[node] = up
        self._call(self._update_proxies())

    def cut(self, links: Iterable[tuple[int, int]]) -> None:
        """Holds up the bytes from the first to the second node of each pair."""
        self._call(self._set_links(links, is_cut=True))

    def heal(self, links: Iterable[tuple[int, int]]) -> None:
        self._call(self._set_links(links, is_cut=False))

    def delay(self, links: Iterable[tuple[int, int]], delay_s: float) -> None:
        for pair in links:
            self._links[pair].delay_s = delay_s

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _set_links(self, links: Iterable[tuple[int, int]], *, is_cut: bool) -> None:
        for pair in links:
            if is_cut:
                self._links[pair].is_open.clear()
            else:
                self._links[pair].is_open.set()
        await self._update_proxies()

    async def _update_proxies(self) -> None:
        for (source, target, _), proxy in self._proxies.items():
            is_healed = self._links[source, target].is_open.is_set()
            is_healed &= self._links[target, source].is_open.is_set()
            # Over a cut link, a stopped node looks like a running one.
            if self._is_up[target] or not is_healed:
                proxy.open()
            else:
                proxy.close()

    async def _close(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()
            proxy.drop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def node_name(node: int) -> str:
    return f"node-{node}"


def link_address(source: int, target: int) -> str:
    return f"127.77.{source}.{target}"


@dataclass(slots=True)
class Link:
    """One direction between two nodes, for all connections."""

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


class LinkProxy:
    """Accepts connections of one node to a port of another, and forwards them."""

    def __init__(
        self, host: str, port: int, links: Mapping[tuple[int, int], Link], source: int, target: int
    ) -> None:
        self._address = (host, port)
        self._forward = links[source, target]
        self._backward = links[target, source]
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._connections: dict[asyncio.Task[None], socket.socket] = {}

    def open(self) -> None:
        if self._listening is None:
            self._listening = socket.create_server(self._address, backlog=128)
            self._listening.setblocking(False)
            self._accepting = asyncio.create_task(self._accept(self._listening))

    def close(self) -> None:
        """Refuses new connections; existing ones stay."""
        if self._listening is not None and self._accepting is not None:
            self._accepting.cancel()
            self._listening.close()
            self._listening = None

    def drop(self) -> None:
        for task, caller in self._connections.items():
            task.cancel()
            caller.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            caller, _ = await asyncio.get_running_loop().sock_accept(listening)
            task = asyncio.create_task(self._forward_connection(caller))
            self._connections[task] = caller
            task.add_done_callback(self._connections.pop)

    async def _forward_connection(self, caller: socket.socket) -> None:
        """Connects to the target, and forwards bytes both ways until either end closes."""
        loop = asyncio.get_running_loop()
        called = socket.socket()
        for end in caller, called:
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._forward.is_open.wait()
            await self._backward.is_open.wait()
            await loop.sock_connect(called, (LOOPBACK, self._address[1]))
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._forward.pump(caller, called))
                pumps.create_task(self._backward.pump(called, caller))
        except* OSError:
            for end in caller, called:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT_ON_CLOSE)
        finally:
            caller.close()
            called.close()
