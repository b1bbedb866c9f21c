"""The processes of the demonstration: broker and registry, and the Spark job. None outlives it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from barnabas.testing.ports import free_port

START_S = 60
STOP_S = 20
JOB = Path(__file__).with_name("job.py")
ON_THIS_MACHINE = (
    "--master local[2] --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 "
    "--conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
)
"""Where else it runs is no business of the job."""


class Process:
    """A program whose lines are kept in a file, the last of them also here."""

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self.lines: deque[str] = deque(maxlen=3)
        self._log = log
        # Of its own session: Ctrl-C reaches this program alone, which ends the others in order.
        self._process = subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log.with_suffix(".err").open("wb"),
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(STOP_S)

    def last_words(self) -> str:
        return self._log.with_suffix(".err").read_text(errors="replace")[-2000:]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                self.lines.append(line.rstrip())


class Platform:
    """A broker and a schema registry on free ports, with their files in `folder`."""

    def __init__(self, folder: Path) -> None:
        port, registry_port = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        self.registry = f"http://127.0.0.1:{registry_port}"
        command = ["-m", "barnabas.cli", "up", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--registry-port", str(registry_port), "--dir", str(folder / "kafka")]
        self._process = Process(command, folder / "platform.log")

    def wait(self) -> None:
        wait_until(self._is_up, "the platform answers", self._process)

    def stop(self) -> None:
        self._process.stop()

    def _is_up(self) -> bool:
        try:
            with urlopen(f"{self.registry}/subjects", timeout=5) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False


def start_job(platform: Platform, folder: Path) -> Process:
    arguments = [platform.servers, platform.registry, str(folder / "checkpoint")]
    return Process([str(JOB), *arguments], folder / "job.log", PYSPARK_SUBMIT_ARGS=ON_THIS_MACHINE)


def wait_until(
    happens: Callable[[], bool], what: str, process: Process, deadline_s: float = START_S
) -> None:
    """RuntimeError if the process ends, or the time does, before it happens."""
    ends = time.monotonic() + deadline_s
    while not happens():
        if not process.is_running:
            raise RuntimeError(f"Ended before {what}:\n{process.last_words()}")
        if time.monotonic() > ends:
            raise RuntimeError(f"Not within {deadline_s:.0f} s: {what}.\n{process.last_words()}")
        time.sleep(0.1)
