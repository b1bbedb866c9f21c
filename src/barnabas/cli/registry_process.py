"""The schema registry that `barnabas up` runs beside its brokers, in a separate process.

So it shares neither the event loop nor the memory of a broker. It stops when `barnabas up` ends,
and is restarted if it is killed before.
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
_MIN_BACKOFF_S = 1
_MAX_BACKOFF_S = 60


@dataclass(slots=True, frozen=True)
class RegistryPlan:
    """Whether to run a registry, its address, and the line about it in the banner."""

    banner_line: str
    host: str = ""
    port: int | None = None

    @classmethod
    def for_port(cls, host: str, port: int) -> Self:
        """Plans a registry on this port, or on a free port if it is 0."""
        if not all(map(_is_installed, _NEEDED)):
            return cls("Schema registry: not installed (pip install 'barnabas[registry]')")
        try:
            free_port = _free_port(host.strip("[]"), port)
        except OSError as error:
            return cls(
                f"Schema registry: not started, port {port} is unavailable ({error.strerror}); "
                "choose another with --registry-port"
            )
        return cls(f"Schema registry: http://{host}:{free_port}", host.strip("[]"), free_port)


class RegistryProcess:
    """Runs the registry process. Does nothing if the plan has no port."""

    def __init__(self, registry_plan: RegistryPlan) -> None:
        self._plan = registry_plan
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None

    async def start(self, bootstrap_servers: str) -> None:
        if self._plan.port is None:
            return
        address = ("--host", self._plan.host, "--port", str(self._plan.port))
        arguments = ("registry", "--bootstrap-server", bootstrap_servers, *address)
        self._process = await _start_process(arguments)
        self._watcher = asyncio.create_task(self._watch(self._process, arguments))

    async def stop(self) -> None:
        if self._process is None or self._watcher is None:
            return
        self._watcher.cancel()  # it may exit from here on
        await asyncio.gather(self._watcher, return_exceptions=True)
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_STOP_TIMEOUT_S):
                await _echo_until_exit(self._process)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _watch(self, process: asyncio.subprocess.Process, arguments: Sequence[str]) -> None:
        """Restarts the process if it is killed. After an error exit, a restart would fail again."""
        backoff_s, started_s = _MIN_BACKOFF_S, time.monotonic()
        while (status := await _echo_until_exit(process)) < 0:
            if time.monotonic() - started_s > _MAX_BACKOFF_S:  # it ran without problems until then
                backoff_s = _MIN_BACKOFF_S
            killed = signal.Signals(-status).name
            _echo(f"killed by {killed}; restarting in {backoff_s} s")
            await asyncio.sleep(backoff_s)
            backoff_s, started_s = min(2 * backoff_s, _MAX_BACKOFF_S), time.monotonic()
            self._process = process = await _start_process(arguments)
        _echo(f"exited with status {status}. Start it with: barnabas {' '.join(arguments)}")


async def _start_process(arguments: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "barnabas.cli", *arguments, "--stop-with-stdin"),
        stdin=asyncio.subprocess.PIPE,  # it stops when this process ends
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C goes to this process, which stops it before the brokers
    )


async def _echo_until_exit(process: asyncio.subprocess.Process) -> int:
    """Echoes its log until it exits; returns its status, negative if it was killed."""
    assert process.stderr is not None
    while not process.stderr.at_eof():
        with suppress(ValueError):  # a line longer than the buffer is skipped
            if line := await process.stderr.readline():
                _echo(line.decode(errors="replace").rstrip())
    return await process.wait()


def _echo(line: str) -> None:
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
