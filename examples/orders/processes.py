"""The processes of the demo: broker and registry, and the Spark job. All stop with it."""

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

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20
JOB = Path(__file__).with_name("job.py")
LOCAL_MODE = (
    "--master local[2] --conf spark.ui.enabled=false --conf spark.driver.host=127.0.0.1 "
    "--conf spark.driver.bindAddress=127.0.0.1 pyspark-shell"
)
"""Spark options outside the job, which can run on any cluster."""


class Process:
    """A program whose output goes to a file, with its last lines in memory."""

    def __init__(self, command: list[str], log: Path, **environment: str) -> None:
        self.lines: deque[str] = deque(maxlen=3)
        self._log = log
        # In its own session: Ctrl-C reaches only this program, which stops the others in order.
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
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join(STOP_TIMEOUT_S)

    def error_output(self) -> str:
        return self._log.with_suffix(".err").read_text(errors="replace")[-2000:]

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._log.open("w") as log:
            for line in self._process.stdout:
                log.write(line)
                self.lines.append(line.rstrip())


class Platform:
    """A broker and a schema registry on free ports, with their files in `directory`."""

    def __init__(self, directory: Path) -> None:
        port, registry_port = free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        self.registry = f"http://127.0.0.1:{registry_port}"
        command = ["-m", "barnabas.cli", "up", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--registry-port", str(registry_port), "--dir", str(directory / "kafka")]
        self._process = Process(command, directory / "platform.log")

    def wait(self) -> None:
        wait_until(self._is_up, "the broker and the registry respond", self._process)

    def stop(self) -> None:
        self._process.stop()

    def _is_up(self) -> bool:
        try:
            with urlopen(f"{self.registry}/subjects", timeout=5) as response:
                return bool(response.status == 200)
        except (URLError, OSError):
            return False


def start_job(platform: Platform, directory: Path) -> Process:
    arguments = [platform.servers, platform.registry, str(directory / "checkpoint")]
    return Process([str(JOB), *arguments], directory / "job.log", PYSPARK_SUBMIT_ARGS=LOCAL_MODE)


def wait_until(
    condition: Callable[[], bool],
    message: str,
    process: Process,
    timeout_s: float = START_TIMEOUT_S,
) -> None:
    """Raises RuntimeError if the process exits, or after the timeout."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if not process.is_running:
            raise RuntimeError(f"Exited before {message}:\n{process.error_output()}")
        if time.monotonic() > deadline_s:
            raise RuntimeError(
                f"Not within {timeout_s:.0f} s: {message}.\n{process.error_output()}"
            )
        time.sleep(0.1)
