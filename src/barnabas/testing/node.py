"""One node of a cluster: a process, its files, and what can be done to it."""

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
STOP_S = 60


@dataclass(slots=True, frozen=True)
class Program:
    """An implementation of Kafka's commands."""

    name: str
    storage: tuple[str, ...]
    """Formats a directory, with the flags of kafka-storage."""
    start: tuple[str, ...]
    """Runs a node of a properties file."""
    environment: "Callable[[Node], Mapping[str, str]]"
    """What a node finds beside what is in ours."""

    def __str__(self) -> str:
        return self.name


def _faults_from_within(node: "Node") -> dict[str, str]:
    """As `barnabas.testing.process` knows them."""
    faults = {"NODE_DISK": str(node.disk_file)}
    if node.hosts_file.exists():
        faults["NODE_HOSTS"] = str(node.hosts_file)
    return faults


_command = (sys.executable, "-m", "barnabas.testing.process")

BARNABAS = Program(
    "barnabas",
    storage=(*_command, "storage"),
    start=(*_command, "start", "--stop-with-stdin"),  # however we end, it ends with us
    environment=_faults_from_within,
)


@dataclass(slots=True, frozen=True)
class Role:
    """What a node is, and who plays it."""

    program: Program = BARNABAS
    broker: bool = True
    controller: bool = True

    @property
    def names(self) -> str:
        named = {"broker": self.broker, "controller": self.controller}
        return ",".join(name for name, is_one in named.items() if is_one)


class Node:
    """Its files are in `directory`: server.properties, the data in `log`, what it says."""

    def __init__(self, node_id: int, role: Role, directory: Path, *, host: str = LOOPBACK) -> None:
        self.node_id = node_id
        self.role = role
        self.program = role.program
        self.directory = directory
        self.host = host
        self.port = free_port()
        """Where clients connect."""
        self.broker_port = self.port + 1
        self.controller_port = free_port()
        self.is_paused = False
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.disk_file.write_bytes(struct.pack("d", 0))

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def data(self) -> Path:
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
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def configure(self, settings: Mapping[str, str]) -> None:
        """Write its file: the listeners are known here, the rest is given."""
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
            "log.dirs": str(self.data),
        }
        if self.role.broker:
            own["inter.broker.listener.name"] = "BROKER"
        lines = [f"{key}={value}\n" for key, value in {**own, **settings}.items()]
        self.properties_file.write_text("".join(lines))

    def format(self, cluster_id: str, *flags: str) -> subprocess.Popen[bytes]:
        """Begin to format its directory; whoever asked waits for it."""
        command = [*self.program.storage, "format", "--cluster-id", cluster_id]
        return self._run([*command, "--config", str(self.properties_file), *flags], DEVNULL)

    def start(self) -> None:
        """Start the process; it is ready later."""
        assert not self.is_running, f"node {self.node_id} already runs as pid {self.pid}"
        self._process = self._run([*self.program.start, str(self.properties_file)], PIPE)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        self.end(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def end(self, number: signal.Signals, *, deadline_s: float = STOP_S) -> int | None:
        """Send the signal and wait for the end; the exit status."""
        if self._process is not None:
            self.send(number)
        return self.await_end(deadline_s=deadline_s)

    def await_end(self, *, deadline_s: float = STOP_S) -> int | None:
        process, self._process = self._process, None
        self.is_paused = False
        if process is None:
            return None
        try:
            return process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise TimeoutError(f"node {self.node_id}: no end within {deadline_s} s") from None
        finally:
            if process.stdin is not None:
                process.stdin.close()

    def pause(self) -> None:
        self.send(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def slow_disk(self, flush_s: float) -> None:
        """From now on a flush takes so much longer (of Barnabas only; a JVM goes on as before)."""
        with self.disk_file.open("r+b") as disk:
            disk.write(struct.pack("d", flush_s))

    def last_words(self) -> str:
        return self.said(1).rpartition("\n")[2]

    def said(self, lines: int = TAIL_LINES) -> str:
        """The end of its log, headed by what became of it."""
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
