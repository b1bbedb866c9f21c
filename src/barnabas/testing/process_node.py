"""One node of a test cluster: a process and its files."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

from barnabas.testing.ports import LOOPBACK, free_port

TAIL_LINES = 40
LINE_CHARACTERS = 240
STOP_TIMEOUT_S = 60


@dataclass(slots=True, frozen=True)
class NodeProgram:
    """An implementation of Kafka's commands."""

    name: str
    storage: tuple[str, ...]
    """Formats a directory, with the flags of kafka-storage."""
    start: tuple[str, ...]
    """Runs a node of a properties file."""
    environment: "Callable[[ProcessNode], Mapping[str, str]]"
    """Environment variables of a node, in addition to those of the test."""

    def __str__(self) -> str:
        return self.name


def _fault_environment(node: "ProcessNode") -> dict[str, str]:
    """Returns the variables that `barnabas.testing.process` reads."""
    faults = {
        "NODE_DISK": str(node.disk_file),
        "NODE_COMPACTIONS": str(node.compactions_file),
    }
    if node.hosts_file.exists():
        faults["NODE_HOSTS"] = str(node.hosts_file)
    return faults


_command = (sys.executable, "-m", "barnabas.testing.process")

BARNABAS = NodeProgram(
    "barnabas",
    storage=(*_command, "storage"),
    start=(*_command, "start", "--stop-with-stdin"),  # it stops when the test process ends
    environment=_fault_environment,
)


@dataclass(slots=True, frozen=True)
class NodeRole:
    """The roles of a node, and the program that runs it."""

    program: NodeProgram = BARNABAS
    broker: bool = True
    controller: bool = True

    @property
    def names(self) -> str:
        named = {"broker": self.broker, "controller": self.controller}
        return ",".join(name for name, is_one in named.items() if is_one)


class ProcessNode:
    """A node whose files are in `directory`: server.properties, `log`, server.log."""

    def __init__(
        self, node_id: int, role: NodeRole, directory: Path, *, host: str = LOOPBACK
    ) -> None:
        self.node_id = node_id
        self.role = role
        self.program = role.program
        self.directory = directory
        self.host = host
        self.port = free_port()
        """The port of clients."""
        self.broker_port = self.port + 1
        self.controller_port = free_port()
        self.is_paused = False
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.disk_file.write_bytes(struct.pack("d", 0))
        self.compactions_file.touch()

    @property
    def bootstrap_server(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def log_dir(self) -> Path:
        return self.directory / "log"

    @property
    def properties_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def hosts_file(self) -> Path:
        return self.directory / "hosts"

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    @property
    def disk_file(self) -> Path:
        return self.directory / "disk"

    @property
    def compactions_file(self) -> Path:
        return self.directory / "compactions"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Writes server.properties: listeners, and the given settings."""
        ports: dict[str, int] = {}
        if self.role.broker:
            ports |= {"CLIENT": self.port, "BROKER": self.broker_port}
        if self.role.controller:
            ports["CONTROLLER"] = self.controller_port
        advertised = {name: LOOPBACK if name == "CLIENT" else self.host for name in ports}
        own = {
            "process.roles": self.role.names,
            "node.id": str(self.node_id),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(f"{name}://{LOOPBACK}:{ports[name]}" for name in ports),
            "advertised.listeners": ",".join(
                f"{name}://{host}:{ports[name]}" for name, host in advertised.items()
            ),
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,BROKER:PLAINTEXT,"
            "CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.log_dir),
        }
        if self.role.broker:
            own["inter.broker.listener.name"] = "BROKER"
        lines = [f"{key}={value}\n" for key, value in {**own, **settings}.items()]
        self.properties_file.write_text("".join(lines))

    def format(self, cluster_id: str, *flags: str) -> subprocess.Popen[bytes]:
        """Starts formatting the directory; the caller waits for the process."""
        command = [*self.program.storage, "format", "--cluster-id", cluster_id]
        return self._run([*command, "--config", str(self.properties_file), *flags], DEVNULL)

    def start(self) -> None:
        """Starts the process without waiting until it serves."""
        assert not self.is_running, f"node {self.node_id} already runs as pid {self.pid}"
        self._process = self._run([*self.program.start, str(self.properties_file)], PIPE)

    def kill(self) -> None:
        self.terminate(signal.SIGKILL)

    def stop(self) -> None:
        self.terminate(signal.SIGTERM)

    def send_signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def terminate(self, number: signal.Signals, *, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        """Sends the signal, waits, and returns the exit status."""
        if self._process is not None:
            self.send_signal(number)
        return self.wait(timeout_s=timeout_s)

    def wait(self, *, timeout_s: float = STOP_TIMEOUT_S) -> int | None:
        process, self._process = self._process, None
        self.is_paused = False
        if process is None:
            return None
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise TimeoutError(f"node {self.node_id}: did not exit within {timeout_s} s") from None
        finally:
            if process.stdin is not None:
                process.stdin.close()

    def pause(self) -> None:
        self.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def slow_disk(self, flush_s: float) -> None:
        """Makes each flush take longer. Has no effect on a JVM."""
        with self.disk_file.open("r+b") as disk:
            disk.write(struct.pack("d", flush_s))

    def begin_compaction(self) -> Callable[[], bool]:
        """Compacts the logs of a broker that serves; returns whether it is done, when called."""
        done_before = self.compactions_file.stat().st_size
        self.send_signal(signal.SIGUSR1)
        return lambda: self.compactions_file.stat().st_size > done_before

    def last_log_line(self) -> str:
        return self.log_tail(1).rpartition("\n")[2]

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """Returns the last lines of its log, with its state as heading."""
        text = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        state = "running" if self.is_running else "not running"
        heading = f"== node {self.node_id} ({self.program}, {self.role.names}): {state}"
        return "\n".join(
            [heading, *(line[:LINE_CHARACTERS] for line in text.splitlines()[-lines:])]
        )

    def _run(self, command: list[str], stdin: int) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                command,
                env={**os.environ, **self.program.environment(self)},
                stdin=stdin,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
