"""Many connections driven from one thread, each with one request in flight."""

import selectors
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat

from bench.raw_client import MIB, Address

OnResponse = Callable[[int, memoryview], bytes | None]
"""Called with a connection's number and its response; returns the next request, if any."""

TIMEOUT_S = 60


class ConnectionSwarm:
    """Many connections, by number."""

    def __init__(self, address: Address, count: int) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        self._received: list[bytearray] = []
        self._buffer = bytearray(4 * MIB)
        for _ in range(count):
            self.add()

    def add(self) -> int:
        """Open a connection; returns its number."""
        number = len(self._sockets)
        connection = socket.create_connection(self._address, timeout=120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(connection, selectors.EVENT_READ, number)
        self._sockets.append(connection)
        self._received.append(bytearray())
        return number

    def send_repeatedly(self, requests: Sequence[bytes], times: int) -> None:
        """Send `times` requests in total; each connection repeats its own, without parsing."""
        count = len(requests)
        self.send_all(
            [repeat(requests[number % count]).__next__ for number in range(len(self._sockets))],
            times,
        )

    def send_all(self, next_frames: Sequence[Callable[[], bytes]], times: int) -> None:
        """Send `times` requests in total; each connection creates its own, without parsing."""
        missing = [0] * len(self._sockets)
        for number, connection in enumerate(self._sockets):
            connection.sendall(next_frames[number]())
        unsent, pending = times - len(self._sockets), times
        buffer = self._buffer
        while pending:
            for connection, number in self._ready():
                count = connection.recv_into(buffer)
                if not count:
                    raise ConnectionError("the broker closed the connection")
                left = missing[number] or 4 + struct.unpack_from(">i", buffer)[0]
                missing[number] = left - count
                if left > count:
                    continue
                pending -= 1
                if unsent > 0:
                    unsent -= 1
                    connection.sendall(next_frames[number]())

    def exchange(self, first: Mapping[int, bytes], on_response: OnResponse) -> None:
        """Send the first requests, then those that `on_response` returns, until there is none."""
        for number, request in first.items():
            self._sockets[number].sendall(request)
        waiting = len(first)
        while waiting:
            for connection, number in self._ready():
                response = self._receive(connection, self._received[number])
                if response is None:
                    continue
                next_request = on_response(number, response)
                if next_request is None:
                    waiting -= 1
                else:
                    connection.sendall(next_request)

    def close(self) -> None:
        for connection in self._sockets:
            connection.close()
        self._selector.close()

    def _ready(self) -> Iterable[tuple[socket.socket, int]]:
        ready = self._selector.select(TIMEOUT_S)
        if not ready:
            raise TimeoutError(f"no response in {TIMEOUT_S} s")
        for key, _ in ready:
            assert isinstance(key.fileobj, socket.socket)
            yield key.fileobj, key.data

    def _receive(self, connection: socket.socket, received: bytearray) -> memoryview | None:
        """Returns the response when it is complete."""
        count = connection.recv_into(self._buffer)
        if not count:
            raise ConnectionError("the broker closed the connection")
        received += memoryview(self._buffer)[:count]
        if len(received) < 4 or len(received) < 4 + struct.unpack_from(">i", received)[0]:
            return None
        response = memoryview(bytes(received))[4:]
        received.clear()
        return response
