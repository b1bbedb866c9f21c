"""Makes full TLS handshakes at a fixed rate, in a process of its own, until its input ends."""

import json
import select
import socket
import ssl
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from bench.raw_client import Address


class Handshakes:
    """A context manager that makes handshakes until it ends; `per_s` has the result."""

    def __init__(self, address: Address, authority_file: str, per_s: int) -> None:
        self.per_s = 0.0
        self.count = 0
        host, port = address
        self._command = [sys.executable, "-m", __spec__.name, host, str(port), authority_file]
        self._command.append(str(per_s))

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
            self.count, seconds = json.loads(output)
            self.per_s = self.count / seconds


def make_handshakes(address: Address, authority_file: str, per_s: int) -> tuple[int, float]:
    """Returns how many were made, in how many seconds. One that is late is not made up for."""
    context = ssl.create_default_context(cafile=authority_file)
    began_s = due_s = time.perf_counter()
    count = 0
    while True:
        pause_s = max(due_s - time.perf_counter(), 0)
        if select.select([sys.stdin], [], [], pause_s)[0]:
            return count, time.perf_counter() - began_s
        with (
            socket.create_connection(address) as connection,
            context.wrap_socket(connection, server_hostname=address[0]),
        ):
            count += 1
        due_s = max(due_s + 1 / per_s, time.perf_counter() - 1 / per_s)


def main() -> None:
    host, port, authority_file, per_s = sys.argv[1:]
    print(flush=True)
    print(json.dumps(make_handshakes((host, int(port)), authority_file, int(per_s))))


if __name__ == "__main__":
    main()
