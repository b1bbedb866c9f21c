"""Brokers as real processes: Barnabas, and the real Kafka through $PEERS/kafka.

Both have their data in `directory/log`, so that each can start on files of the other, and their
output in `directory/server.log`.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from tests.wait import wait_until

from barnabas.testing.ports import free_port

PEERS = Path(os.environ.get("PEERS", Path(__file__).parents[3] / "shared" / "peers"))

METADATA_V1_WITHOUT_TOPICS = struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0)


class Broker(ABC):
    """A broker with its own directory and port."""

    def __init__(
        self,
        directory: Path,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.directory = directory
        self.host = host
        self.port = port or free_port()
        self.settings = dict(settings or {})
        self.pid: int | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def start(self, *, deadline_s: float = 60) -> None:
        """Starts the process and waits until it is ready."""

    @abstractmethod
    def end_with_signal(self, number: signal.Signals, *, deadline_s: float = 60) -> int | None:
        """Sends the signal and waits for the end; returns the exit status if it is known."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.directory / "log"

    @property
    def log_file(self) -> Path:
        return self.directory / "server.log"

    def log_text(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def stop(self) -> int | None:
        return self.end_with_signal(signal.SIGTERM)

    def kill(self) -> int | None:
        return self.end_with_signal(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def rss_bytes(self) -> int:
        resident_pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return resident_pages * os.sysconf("SC_PAGE_SIZE")

    def is_ready(self) -> bool:
        """Whether the response to a Metadata request has at least one broker."""
        with contextlib.suppress(OSError), connect(self.port) as connection:
            connection.sendall(METADATA_V1_WITHOUT_TOPICS)
            response = read_frame(connection)
            return len(response) >= 8 and struct.unpack_from(">i", response, 4)[0] > 0
        return False


class BrokerProcess(Broker):
    """Barnabas, started as a user starts it: `barnabas up`."""

    _process: subprocess.Popen[bytes] | None = None

    def start(self, *, deadline_s: float = 60) -> None:
        assert self._process is None, f"already running as pid {self.pid}"
        command = [sys.executable, "-m", "barnabas.cli", "up"]
        command += ["--host", self.host, "--port", str(self.port), "--dir", str(self.data)]
        command += ["--no-registry"]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.pid = self._process.pid
        try:
            wait_until(self._ended_or_ready, "the broker is ready", deadline_s, poll_s=0.01)
        except TimeoutError:
            self.kill()
            raise
        if (status := self._process.poll()) is not None:
            self._process = None
            tail = "\n".join(self.log_text().splitlines()[-30:])
            raise RuntimeError(f"barnabas up ended with status {status}:\n{tail}")

    def end_with_signal(self, number: signal.Signals, *, deadline_s: float = 60) -> int | None:
        process, self._process, self.pid = self._process, None, None
        if process is None:
            return None
        process.send_signal(number)
        try:
            return process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise TimeoutError(f"no end {deadline_s} s after {number.name}") from None

    def _ended_or_ready(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None or self.is_ready()


class PeerBroker(Broker):
    """The real Kafka: one node, broker and controller in one JVM."""

    def start(self, *, deadline_s: float = 90) -> None:
        command = ["start", "--port", str(self.port), "--dir", str(self.directory)]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        pid_file = self.directory / "pid"
        try:
            run_peer(*command, deadline_s=deadline_s)
            wait_until(self.is_ready, "the real Kafka is ready", deadline_s)
        except BaseException:
            self.pid = int(pid_file.read_text()) if pid_file.exists() else None
            self.kill()
            raise
        self.pid = int(pid_file.read_text())

    def end_with_signal(self, number: signal.Signals, *, deadline_s: float = 60) -> int | None:
        pid, self.pid = self.pid, None
        if pid is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        try:
            wait_until(
                lambda: not is_process_alive(pid), f"pid {pid} ends after {number.name}", deadline_s
            )
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        (self.directory / "pid").unlink(missing_ok=True)
        return None


def run_peer(*command: str, stdin: str | None = None, deadline_s: float = 60) -> str:
    """Runs $PEERS/kafka and returns its output. Fails if the command fails."""
    done = run_peer_process(*command, stdin=stdin, deadline_s=deadline_s)
    assert done.returncode == 0, f"kafka {' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_peer_process(
    *command: str, stdin: str | None = None, deadline_s: float = 60
) -> subprocess.CompletedProcess[str]:
    """Runs $PEERS/kafka to its end."""
    return subprocess.run(
        [PEERS / "kafka", *command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=deadline_s,
        check=False,
    )


def is_peer_installed() -> bool:
    return os.access(PEERS / "kafka", os.X_OK)


def is_process_alive(pid: int) -> bool:
    """Whether the process runs; a zombie process does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def connect(port: int, *, deadline_s: float = 30, from_host: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(
        ("127.0.0.1", port), timeout=deadline_s, source_address=(from_host, 0)
    )


def read_frame(connection: socket.socket) -> bytes:
    """Returns the next size-prefixed frame without its size, or b"" if the connection is closed."""
    with connection.makefile("rb") as stream:
        prefix = stream.read(4)
        if len(prefix) < 4:
            return b""
        (size,) = struct.unpack(">i", prefix)
        return stream.read(size)
