"""A client that produces at a rate above its quota, in a process of its own, until its input ends.

It ignores the throttle times in responses, and has many connections: only the broker limits it.
"""

import json
import select
import selectors
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from bench import raw_client

CLIENT_ID = "greedy"
CONNECTIONS = 50
REQUEST_BYTES = 16_000

_SIZE = struct.Struct(">i")


class GreedyClient:
    """A context manager that produces until it ends; `mb_per_s` is what the broker acknowledged."""

    def __init__(self, address: raw_client.Address, topic: str, bytes_per_s: int) -> None:
        self.mb_per_s = 0.0
        host, port = address
        self._command = [sys.executable, "-m", __spec__.name, host, str(port), topic]
        self._command.append(str(bytes_per_s))

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has begun
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        output, _ = self._process.communicate()  # the end of its input ends it
        if kind is None:
            self.mb_per_s = json.loads(output)


class _Connection:
    """A connection that is sent one frame again and again. All responses have the same size."""

    def __init__(self, address: raw_client.Address, frame: bytes) -> None:
        self.sock = socket.create_connection(address)
        self.sock.setblocking(False)
        self._frame = frame
        self._position = 0
        self._received = bytearray()

    @property
    def acknowledged(self) -> int:
        """The number of responses."""
        if len(self._received) < _SIZE.size:
            return 0
        return len(self._received) // (_SIZE.size + _SIZE.unpack_from(self._received)[0])

    def send(self) -> None:
        """Sends a frame, or the rest of it, as far as the socket takes it."""
        with suppress(BlockingIOError):
            sent = self.sock.send(self._frame[self._position :])
            self._position = (self._position + sent) % len(self._frame)

    def receive(self) -> None:
        with suppress(BlockingIOError):
            while received := self.sock.recv(1 << 16):
                self._received += received


def produce(address: raw_client.Address, topic: str, bytes_per_s: int) -> float:
    """Returns the acknowledged bytes per second. A frame that is late is not made up for."""
    frame = raw_client.produce_frame(topic, 1, REQUEST_BYTES, client_id=CLIENT_ID)
    connections = [_Connection(address, frame) for _ in range(CONNECTIONS)]
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.sock, selectors.EVENT_READ, connection)
    interval_s = len(frame) / bytes_per_s
    began_s = due_s = time.perf_counter()
    turn = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        for key, _ in selector.select(max(due_s - time.perf_counter(), 0)):
            key.data.receive()
        now_s = time.perf_counter()
        while due_s <= now_s:
            connections[turn % CONNECTIONS].send()
            turn += 1
            due_s += interval_s
    seconds = time.perf_counter() - began_s
    return sum(connection.acknowledged for connection in connections) * len(frame) / seconds


def main() -> None:
    host, port, topic, bytes_per_s = sys.argv[1:]
    print(flush=True)
    print(json.dumps(produce((host, int(port)), topic, int(bytes_per_s)) / 1e6))


if __name__ == "__main__":
    main()
