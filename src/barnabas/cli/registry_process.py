"""The schema registry beside the brokers of `barnabas up`: a process of its own.

So the loop and the memory of a broker stay its own. It ends with `barnabas up`, however that ends.
"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Self

import click

_NEEDED = ("starlette", "uvicorn", "urllib3", "fastavro", "jsonschema", "google.protobuf")
_STOP_TIMEOUT_S = 10


@dataclass(slots=True, frozen=True)
class Beside:
    """Whether there is to be a registry, and where; `remark` is what the banner says of it."""

    remark: str
    host: str = ""
    port: int | None = None

    @classmethod
    def on(cls, host: str, port: int) -> Self:
        """At a port, or (0) at any that is free."""
        if not all(map(_is_installed, _NEEDED)):
            return cls("Schema registry: not installed (pip install 'barnabas[registry]')")
        try:
            found = _free_port(host.strip("[]"), port)
        except OSError as taken:
            return cls(
                f"Schema registry: none, as port {port} cannot be had ({taken.strerror}); "
                "--registry-port says another"
            )
        return cls(f"Schema registry: http://{host}:{found}", host.strip("[]"), found)


class RegistryProcess:
    """Started once there are brokers; does nothing if there is to be none."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside
        self._process: asyncio.subprocess.Process | None = None
        self._echoing: asyncio.Task[None] | None = None

    async def start(self, bootstrap_servers: str) -> None:
        if self._beside.port is None:
            return
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "barnabas.cli", "registry", "--stop-with-stdin"),
            *("--bootstrap-server", bootstrap_servers),
            *("--host", self._beside.host, "--port", str(self._beside.port)),
            stdin=asyncio.subprocess.PIPE,  # it ends with us, however we end
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours: it stops before the brokers do
        )
        assert self._process.stderr is not None
        self._echoing = asyncio.create_task(_echo(self._process.stderr))

    async def stop(self) -> None:
        if self._process is None or self._echoing is None:
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._echoing


async def _echo(lines: asyncio.StreamReader) -> None:
    while line := await lines.readline():
        click.echo(f"registry | {line.decode(errors='replace').rstrip()}", err=True)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _free_port(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as held:
        found: int = held.getsockname()[1]
        return found
