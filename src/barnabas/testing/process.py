"""The process of one node in a test cluster: the `barnabas` command with injected faults.

    python -m barnabas.testing.process start server.properties

NODE_HOSTS names a hosts file that is read before the system resolver is used.
NODE_DISK names a file of one float: the seconds that each flush of a file is delayed.
NODE_COMPACTIONS names a file that grows by one byte when a compaction is done: SIGUSR1 starts one.
"""

import asyncio
import mmap
import os
import runpy
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.node import Node

WRITES_PER_FLUSH = 50
"""The delay of a write is this many times shorter than that of a flush."""


def main() -> None:
    if hosts := os.environ.get("NODE_HOSTS"):
        _override_hosts(Path(hosts))
    if disk := os.environ.get("NODE_DISK"):
        _slow_down(Path(disk))
    if compactions := os.environ.get("NODE_COMPACTIONS"):
        _compact_on_signal(Path(compactions))
    runpy.run_module("barnabas.cli", run_name="__main__", alter_sys=True)


def _override_hosts(file: Path) -> None:
    lines = [line.split() for line in file.read_text().splitlines()]
    addresses = {name: address for address, name in lines}
    resolve = socket.getaddrinfo

    def resolve_override(host: Any, *rest: Any, **named: Any) -> Any:
        return resolve(addresses.get(host, host), *rest, **named)

    socket.getaddrinfo = resolve_override


def _slow_down(file: Path) -> None:
    with file.open("r+b") as opened:
        delay_s = mmap.mmap(opened.fileno(), 8)

    def delayed(call: Callable[..., Any], share: float) -> Callable[..., Any]:
        def wait_and_call(*given: Any) -> Any:
            if wait_s := struct.unpack("d", delay_s[:8])[0]:
                time.sleep(wait_s * share)
            return call(*given)

        return wait_and_call

    for name in "fsync", "fdatasync":
        setattr(os, name, delayed(getattr(os, name), 1))
    for name in "pwrite", "pwritev":
        setattr(os, name, delayed(getattr(os, name), 1 / WRITES_PER_FLUSH))


def _compact_on_signal(file: Path) -> None:
    start = Node.start

    def on_compacted() -> None:
        with file.open("ab") as opened:
            opened.write(b".")

    async def start_and_listen(*given: Any, **named: Any) -> Node:
        node = await start(*given, **named)
        if node.settings.is_broker:
            cleaner = node.broker.partitions.cleaner
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGUSR1, cleaner.clean_now, on_compacted
            )
        return node

    Node.start = start_and_listen  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
