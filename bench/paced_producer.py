"""A producer at a fixed rate, in a process of its own, that records how long each request takes.

Requests are sent when they are due, whether or not earlier ones were acknowledged, and their time
counts from then: a broker that pauses delays all of them.
"""

import json
import select
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections import deque
from types import TracebackType
from typing import Self

from bench import raw_client

REQUESTS_PER_S = 1000
RECORD_BYTES = 1000

Latencies = dict[str, float]


class PacedProducer:
    """A context manager that produces until it ends; `latencies` has the result."""

    def __init__(self, address: raw_client.Address, topic: str, records_per_s: int) -> None:
        self.latencies: Latencies = {}
        host, port = address
        self._command = [sys.executable, "-m", __spec__.name, host, str(port), topic]
        self._command.append(str(records_per_s))

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
            self.latencies = json.loads(output)


def times_alone(beside: Latencies, alone: Latencies) -> Latencies:
    """Returns by how much other work has delayed the producer."""
    return {
        "p99_alone_ms": alone["p99_ms"],
        "p99_times_alone": beside["p99_ms"] / alone["p99_ms"],
    }


def produce(address: raw_client.Address, topic: str, records_per_s: int) -> list[float]:
    """Produces until the standard input ends; returns the time that each request took."""
    records = records_per_s // REQUESTS_PER_S
    frame = raw_client.produce_frame(topic, 1, RECORD_BYTES, records=records)
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    due_s = time.perf_counter()
    unacknowledged: deque[float] = deque()
    times_s: list[float] = []
    received = bytearray()
    is_ending = False
    while not is_ending or unacknowledged:
        timeout_s = max(due_s - time.perf_counter(), 0) if not is_ending else None
        inputs = [connection] if is_ending else [connection, sys.stdin]
        readable, _, _ = select.select(inputs, [], [], timeout_s)
        now_s = time.perf_counter()
        if connection in readable:
            received += connection.recv(1 << 16)
            for _ in range(_take_frames(received)):
                times_s.append(now_s - unacknowledged.popleft())
        is_ending = is_ending or sys.stdin in readable
        while not is_ending and due_s <= now_s:
            connection.sendall(frame)
            unacknowledged.append(due_s)
            due_s += 1 / REQUESTS_PER_S
    connection.close()
    return times_s


def _take_frames(received: bytearray) -> int:
    """Removes the complete frames; returns how many."""
    count = position = 0
    while len(received) - position >= 4:
        end = position + 4 + struct.unpack_from(">i", received, position)[0]
        if end > len(received):
            break
        position, count = end, count + 1
    del received[:position]
    return count


def main() -> None:
    host, port, topic, records_per_s = sys.argv[1:]
    print(flush=True)
    times_ms = sorted(1000 * s for s in produce((host, int(port)), topic, int(records_per_s)))
    percentiles = statistics.quantiles(times_ms, n=100)
    latencies = {
        "requests": len(times_ms),
        "median_ms": percentiles[49],
        "p99_ms": percentiles[98],
        "max_ms": times_ms[-1],
    }
    print(json.dumps(latencies))


if __name__ == "__main__":
    main()
