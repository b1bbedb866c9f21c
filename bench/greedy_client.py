"""A client that produces at a rate above its quota, in a process of its own, until its input ends.

It ignores the throttle times in responses, and has many connections: only the broker limits it.
"""

import json
import select
import selectors
import socket
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


class GreedyClient:
    """A context manager that produces until it ends; `mb_per_s` is what the broker received."""

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
    """A connection that is sent one frame again and again, and whose responses are dropped."""

    def __init__(self, address: raw_client.Address, frame: bytes) -> None:
        self.sock = socket.create_connection(address)
        self.sock.setblocking(False)
        self.sent_bytes = 0
        self._frame = frame
        self._position = 0

    def send(self) -> bool:
        """Sends a frame as far as the socket takes it. Returns whether that was all of it."""
        with suppress(BlockingIOError):
            sent = self.sock.send(self._frame[self._position :])
            self.sent_bytes += sent
            self._position = (self._position + sent) % len(self._frame)
            return self._position == 0
        return False

    def drop_responses(self) -> None:
        with suppress(BlockingIOError):
            while self.sock.recv(1 << 16):
                pass


def produce(address: raw_client.Address, topic: str, bytes_per_s: int) -> float:
    """Returns the bytes per second that the sockets took. A frame that is late is not made up."""
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
            key.data.drop_responses()
        now_s = time.perf_counter()
        while due_s <= now_s:
            connections[turn % CONNECTIONS].send()
            turn += 1
            due_s += interval_s
    seconds = time.perf_counter() - began_s
    return sum(connection.sent_bytes for connection in connections) / seconds


def main() -> None:
    host, port, topic, bytes_per_s = sys.argv[1:]
    print(flush=True)
    print(json.dumps(produce((host, int(port)), topic, int(bytes_per_s)) / 1e6))


if __name__ == "__main__":
    main()
