"""The schema registry beside the brokers of `barnabas up`: a process of its own.

So the loop and the memory of a broker stay its own. It ends with `barnabas up`, however that ends;
if it is killed before, it is started again.
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Self

import click

_NEEDED = ("starlette", "uvicorn", "urllib3", "fastavro", "jsonschema", "google.protobuf")
_STOP_TIMEOUT_S = 10
_SHORTEST_PAUSE_S = 1
_LONGEST_PAUSE_S = 60


@dataclass(slots=True, frozen=True)
class RegistryPlan:
    """Whether there is to be a registry, and where; `remark` is what the banner says of it."""

    banner_line: str
    host: str = ""
    port: int | None = None

    @classmethod
    def for_port(cls, host: str, port: int) -> Self:
        """At a port, or (0) at any that is free."""
        if not all(map(_is_installed, _NEEDED)):
            return cls("Schema registry: not installed (pip install 'barnabas[registry]')")
        try:
            free_port = _free_port(host.strip("[]"), port)
        except OSError as error:
            return cls(
                f"Schema registry: none, as port {port} cannot be had ({error.strerror}); "
                "--registry-port says another"
            )
        return cls(f"Schema registry: http://{host}:{free_port}", host.strip("[]"), free_port)


class RegistryProcess:
    """Started once there are brokers; does nothing if there is to be none."""

    def __init__(self, registry_plan: RegistryPlan) -> None:
        self._plan = registry_plan
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, bootstrap_servers: str) -> None:
        if self._plan.port is None:
            return
        where = ("--host", self._plan.host, "--port", str(self._plan.port))
        arguments = ("registry", "--bootstrap-server", bootstrap_servers, *where)
        self._process = await _started(arguments)
        self._watching = asyncio.create_task(self._watch(self._process, arguments))

    async def stop(self) -> None:
        if self._process is None or self._watching is None:
            return
        self._watching.cancel()  # from here on it may end
        await asyncio.gather(self._watching, return_exceptions=True)
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await _lived(self._process)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _watch(self, process: asyncio.subprocess.Process, arguments: Sequence[str]) -> None:
        """Start it again if it is killed. If it gives up it has told why, and would again."""
        pause_s, started_s = _SHORTEST_PAUSE_S, time.monotonic()
        while (status := await _lived(process)) < 0:
            if time.monotonic() - started_s > _LONGEST_PAUSE_S:  # it was well until then
                pause_s = _SHORTEST_PAUSE_S
            killed = signal.Signals(-status).name
            _tell(f"killed by {killed}; it is started again in {pause_s} s")
            await asyncio.sleep(pause_s)
            pause_s, started_s = min(2 * pause_s, _LONGEST_PAUSE_S), time.monotonic()
            self._process = process = await _started(arguments)
        _tell(f"ended with status {status}. Start it with: barnabas {' '.join(arguments)}")


async def _started(arguments: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "barnabas.cli", *arguments, "--stop-with-stdin"),
        stdin=asyncio.subprocess.PIPE,  # it ends with us, however we end
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is ours: it stops before the brokers do
    )


async def _lived(process: asyncio.subprocess.Process) -> int:
    """Pass on what it says until it has ended; its status, negative if it was killed."""
    assert process.stderr is not None
    while not process.stderr.at_eof():
        with suppress(ValueError):  # a line too long to be kept is left out
            if line := await process.stderr.readline():
                _tell(line.decode(errors="replace").rstrip())
    return await process.wait()


def _tell(line: str) -> None:
    click.echo(f"registry | {line}", err=True)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _free_port(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        bound_port: int = listener.getsockname()[1]
        return bound_port
