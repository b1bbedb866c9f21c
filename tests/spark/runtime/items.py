"""What work items of these tests run. Executors import it."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.spark.runtime.work import WorkContext


@dataclass(frozen=True)
class ReturnValue:
    value: Any

    def __call__(self, context: WorkContext) -> Any:
        return self.value


@dataclass(frozen=True)
class ReturnContext:
    def __call__(self, context: WorkContext) -> tuple[int, int, int]:
        return context.batch, context.attempt, os.getpid()


@dataclass(frozen=True)
class IsImported:
    module: str

    def __call__(self, context: WorkContext) -> bool:
        return self.module in sys.modules


@dataclass(frozen=True)
class RaiseError:
    error: Any

    def __call__(self, context: WorkContext) -> None:
        raise self.error


class UnpicklableError(Exception):
    """Pickles, but cannot be unpickled: the constructor needs two arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


@dataclass(frozen=True)
class RaiseUnpicklableError:
    def __call__(self, context: WorkContext) -> None:
        raise UnpicklableError(7, "disk on fire")


@dataclass(frozen=True)
class ReturnUnpicklable:
    def __call__(self, context: WorkContext) -> Any:
        return lambda: None


@dataclass(frozen=True)
class ExitProcess:
    def __call__(self, context: WorkContext) -> None:
        raise SystemExit(3)


@dataclass(frozen=True)
class KillWorker:
    """Kills the process that runs it: always, or only if the marker does not exist yet."""

    marker: Path | None

    def __call__(self, context: WorkContext) -> str:
        if self.marker is None or not self.marker.exists():
            if self.marker is not None:
                self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return f"attempt {context.attempt}"


@dataclass(frozen=True)
class WaitForFile:
    """Writes its process id to `started`, and waits until `may_end` exists."""

    started: Path
    may_end: Path
    timeout_s: float = 60.0

    def __call__(self, context: WorkContext) -> str:
        self.started.write_text(str(os.getpid()))
        deadline_s = time.monotonic() + self.timeout_s
        while not self.may_end.exists():
            if time.monotonic() > deadline_s:
                raise TimeoutError(self.may_end)
            time.sleep(0.005)
        return "ended"
