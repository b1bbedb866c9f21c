"""A Connect worker of `barnabas connect start`, as processes that are killed and paused."""

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.spark.exactly_once.victims import MARK, Kind, kill, living
from tests.wait import wait_until

from barnabas.testing.ports import LOOPBACK, free_port

ROOT = Path(__file__).parents[3]
SESSION_TIMEOUT_S = 4.0
STOP_TIMEOUT_S = 60.0
END_TIMEOUT_S = 30.0
"""How long the JVM and the Python processes of a driver that was killed may live."""

TAIL_LINES = 60


class WorkerProcess:
    """One worker. Its address stays the same when it is started again."""

    def __init__(self, number: int, directory: Path, source: Path) -> None:
        """`source` is the folder of the package, perhaps with a planted bug."""
        self.number = number
        self.port = free_port()
        self.is_paused = False
        self._directory = directory
        self._source = source
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._ended_marks: list[str] = []

    def __str__(self) -> str:
        return f"worker {self.number}"

    @property
    def id(self) -> str:
        """As in statuses."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.id}"

    @property
    def log_file(self) -> Path:
        return self._directory / f"worker{self.number}.log"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended_by_itself(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    @property
    def is_responsive(self) -> bool:
        return self.is_running and not self.is_paused

    def start(self, settings: Mapping[str, str]) -> None:
        assert not self.is_running, f"{self} already runs"
        if self._mark:
            self._ended_marks.append(self._mark)
        self._mark = uuid.uuid4().hex
        command = [
            *(Path(sys.executable).parent / "barnabas", "connect", "start"),
            *("--host", LOOPBACK, "--port", str(self.port), "--stop-with-stdin"),
            *("--log-file", self.log_file),
        ]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {**os.environ, MARK: self._mark, "PYTHONPATH": str(self._source)}
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=ROOT, env=environment
            )
        self.is_paused = False

    def processes(self) -> dict[Kind, list[int]]:
        """Returns the ids of its processes by kind; `Kind.DRIVER` is the worker itself."""
        found = living(self._mark)
        driver = self._process.pid if self._process is not None else -1
        for pids in found.values():
            if driver in pids:
                pids.remove(driver)
        found[Kind.DRIVER] = [driver] if self.is_running else []
        return found

    def kill_driver(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._reap()

    def kill_all(self) -> None:
        """Kills the driver and everything that it has started."""
        self.kill_driver()
        for pids in living(self._mark).values():
            for pid in pids:
                kill(pid)

    def pause(self, *, with_children: bool) -> None:
        """Stops the driver, or all of its processes as if the machine was suspended."""
        self.is_paused = True
        self._signal(signal.SIGSTOP, with_children=with_children)

    def resume(self) -> None:
        self._signal(signal.SIGCONT, with_children=True)
        self.is_paused = False

    def stop(self) -> int:
        """Stops it cleanly and returns its exit status. Raises TimeoutExpired."""
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(STOP_TIMEOUT_S)
        self._reap()
        return status

    def wait_until_ended(self) -> None:
        """Raises TimeoutError if processes of drivers that have ended do not end."""
        marks = [*self._ended_marks, *([] if self.is_running else [self._mark])]

        def has_ended() -> bool:
            return not any(pid for mark in marks for pid in _pids(mark))

        wait_until(has_ended, f"nothing is left of {self}", END_TIMEOUT_S, poll_s=0.2)
        self._ended_marks.clear()

    def leftovers(self) -> list[str]:
        """Returns the command lines of processes of drivers that have ended."""
        marks = [*self._ended_marks, *([] if self.is_running else [self._mark])]
        lines = []
        for pid in (pid for mark in marks for pid in _pids(mark)):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
                lines.append(f"{pid} {words[:60]}...{words[-80:]}")
        return lines

    def close(self) -> None:
        """Kills everything, also of drivers that have ended."""
        self.kill_driver()
        for mark in (*self._ended_marks, self._mark):
            for pid in _pids(mark):
                kill(pid)

    def log_tail(self) -> str:
        text = self.log_file.read_text(errors="replace") if self.log_file.exists() else ""
        return "\n".join([f"== {self}", *text.splitlines()[-TAIL_LINES:]])

    def _signal(self, number: signal.Signals, *, with_children: bool) -> None:
        processes = self.processes()
        pids = [pid for each in processes.values() for pid in each]
        for pid in pids if with_children else processes[Kind.DRIVER]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _reap(self) -> None:
        process, self._process = self._process, None
        self.is_paused = False
        if process is not None:
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _pids(mark: str) -> list[int]:
    if not mark:
        return []
    return [pid for pids in living(mark).values() for pid in pids]
