"""Registries as processes that can be stopped, paused and killed."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.registry.http_requests import send_request
from tests.wait import wait_until

START_S = 60
STOP_S = 30


class RegistryProcess:
    """`barnabas registry` on a free port."""

    def __init__(self, bootstrap_servers: str, log: Path, *arguments: str) -> None:
        self._log = log
        command = [sys.executable, "-m", "barnabas.cli", "registry", "-b", bootstrap_servers]
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", "0", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self._log.read_text()

    def wait(self) -> "RegistryProcess":
        """Waits until it responds."""
        wait_until(
            lambda: "schema registry on" in self.output or self.process.poll() is not None,
            "the registry responds",
            START_S,
        )
        assert self.process.poll() is None, self.output
        return self

    @property
    def url(self) -> str:
        return re.findall(r"schema registry on (http://[\w.:]+)", self.output)[-1]

    @property
    def is_leader(self) -> bool:
        lines = [line for line in self.output.splitlines() if "the leader of" in line]
        return bool(lines) and "no longer" not in lines[-1]

    def is_responding(self) -> bool:
        try:
            return send_request(self.url, "GET", "/").status == 200
        except OSError:
            return False

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        return self.process.wait(STOP_S)
