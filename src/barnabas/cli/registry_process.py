"""The schema registry that `barnabas up` runs beside its brokers, in a separate process.

So it shares neither the event loop nor the memory of a broker. It stops when `barnabas up` ends,
and is restarted if it is killed before.
"""

import asyncio
import errno
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from barnabas.cli.child_output import echo_error, echo_lines
from barnabas.cli.local_ports import suggest_port
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.local_processes import describe_taken_port
from barnabas.cli.shell_commands import shell_command
from barnabas.cli.up_options import UpOptions
from barnabas.net.listening_sockets import require_free_port
from barnabas.node.format import host_for_local_nodes

LOG_FILE = "schema-registry.log"
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

    @property
    def ports(self) -> tuple[int, ...]:
        """The port of the registry, if it runs."""
        return () if self.port is None else (self.port,)

    @classmethod
    def for_port(
        cls, host: str, port: int | None, default: int, *, is_secured: bool = False
    ) -> Self:
        """Plans a registry on this port, or on the default port if it is None; 0 is any free one.

        Raises CommandError if the port was chosen and cannot be used.
        """
        if not all(map(_is_installed, _NEEDED)):
            return cls("Schema registry: not installed (pip install 'barnabas[registry]')")
        address, wanted = host.strip("[]"), default if port is None else port
        try:
            free_port = require_free_port(address, wanted)
        except OSError as error:
            reason = _describe(error, address, wanted)
            option = f"--registry-port {suggest_port(address, wanted)}"
            if port is not None:
                raise CommandError(f"{reason}. Choose another port: {option}") from None
            return cls(
                f"Schema registry: not started.\n  {reason}.\n  Choose another port: {option}"
            )
        scheme = "https" if is_secured else "http"
        url = f"{scheme}://{host_for_local_nodes(host)}:{free_port}"
        return cls(f"Schema registry: {url}", address, free_port)


class RegistryProcess:
    """Runs the registry process. Does nothing if the plan has no port."""

    def __init__(
        self,
        registry_plan: RegistryPlan,
        log_file: Path,
        client_file: Path | None,
        is_verbose: bool,
        listener_file: Path | None = None,
    ) -> None:
        """`client_file` has the settings with which it connects to the brokers.

        `listener_file` has those of its own listener: TLS and authentication.
        """
        self._plan = registry_plan
        self._client = [] if client_file is None else ["--command-config", str(client_file)]
        self._listener = [] if listener_file is None else ["--config", str(listener_file)]
        self._logging = ["--log-file", str(log_file), *(["--verbose"] if is_verbose else [])]
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None

    @classmethod
    def of(
        cls, registry_plan: RegistryPlan | None, directory: Path, options: UpOptions
    ) -> "Self | None":
        """Returns the process of a plan, which logs to the directory; None without a plan."""
        if registry_plan is None:
            return None
        return cls(
            registry_plan,
            directory / LOG_FILE,
            options.client_file,
            options.is_verbose,
            options.registry_file,
        )

    async def start(self, bootstrap_servers: str) -> None:
        if self._plan.port is None:
            return
        address = ("--host", self._plan.host, "--port", str(self._plan.port))
        arguments = (
            "registry",
            "--bootstrap-server",
            bootstrap_servers,
            *address,
            *self._client,
            *self._listener,
        )
        self._process = await self._start_process(arguments)
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
            echo_error(f"registry | killed by {killed}; restarting in {backoff_s} s")
            await asyncio.sleep(backoff_s)
            backoff_s, started_s = min(2 * backoff_s, _MAX_BACKOFF_S), time.monotonic()
            self._process = process = await self._start_process(arguments)
        command = shell_command("barnabas", *arguments)
        echo_error(f"registry | exited with status {status}. Start it with: {command}")

    async def _start_process(self, arguments: Sequence[str]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "barnabas.cli", *arguments, "--stop-with-stdin"),
            *self._logging,
            stdin=asyncio.subprocess.PIPE,  # it stops when this process ends
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C goes to this process, which stops it first
        )


async def _echo_until_exit(process: asyncio.subprocess.Process) -> int:
    """Echoes its log until it exits; returns its status, negative if it was killed."""
    assert process.stderr is not None
    await echo_lines("registry", process.stderr)
    return await process.wait()


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _describe(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return describe_taken_port(host, port)
    return f"Port {port} of {host} is unavailable: {error.strerror}"
