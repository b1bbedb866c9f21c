"""`barnabas up --brokers N` as a process, with its output."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.conformance.brokers import is_process_alive
from tests.wait import wait_until

BARNABAS = (sys.executable, "-m", "barnabas.cli")
START_S = 90
STOP_S = 60


class Up:
    """Runs on free ports, or on those of an existing directory."""

    def __init__(self, directory: Path, brokers: int = 3, *arguments: str) -> None:
        self.directory = directory
        self._log = directory.with_suffix(".log")
        command = ["up", "--brokers", str(brokers), "--host", "127.0.0.1", "--port", "0"]
        command += ["--no-registry"] if "--registry-port" not in arguments else []
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*BARNABAS, *command, "--dir", str(directory), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def log_of(self, node_id: int) -> str:
        return (self.directory / str(node_id) / "server.log").read_text()

    @property
    def bootstrap(self) -> str:
        return re.findall(r"^Bootstrap servers: (.*)$", self.output, re.MULTILINE)[-1]

    @property
    def metrics(self) -> list[str]:
        return re.findall(r"^\d+ .* (http://\S+)$", self.output, re.MULTILINE)

    @property
    def address(self) -> str:
        """The address of the first broker."""
        return re.findall(r"--bootstrap-server (?:\\\s+)?(\S+)", self.output)[-1]

    @property
    def registry(self) -> str:
        return re.findall(r"^Schema registry: (http\S+)$", self.output, re.MULTILINE)[-1]

    def wait(self, starts: int = 1) -> "Up":
        """Waits for the banner; `starts` is the number of starts in this directory."""
        wait_until(
            lambda: self.output.count("Try it with any") == starts or not self.is_running,
            "the cluster is up",
            START_S,
        )
        assert self.is_running, self.output
        return self

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def pid_of(self, node_id: int) -> int:
        return next(pid for pid, file in self._children() if file.stem == str(node_id))

    @property
    def pids(self) -> list[int]:
        return [pid for pid, _ in self._children()]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Sends the signal, waits until all processes have exited, and returns the status."""
        pids = self.pids
        if self.is_running:
            self.process.send_signal(number)
        status = self.process.wait(STOP_S)
        wait_until(lambda: not any(map(is_process_alive, pids)), "its nodes have ended", STOP_S)
        return status

    def _children(self) -> list[tuple[int, Path]]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words = (folder / "cmdline").read_text().split("\0")
            except OSError:
                continue  # it has just exited
            if parent == self.process.pid and "start" in words:
                found.append((int(folder.name), Path(words[words.index("start") + 1])))
        return found
