"""Runs protoc, the official Protobuf compiler, in a process that also compiles the next schemas.

protoc comes as a library in grpcio-tools. It prints errors to stderr, which a library must not
redirect in its user's process. Starting a process takes 35 to 75 ms, a request to a running one
0.5 ms more than a call of the library. A text that makes protoc crash ends that process only.
"""

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from barnabas.schemas import SchemaError

_WORKER = Path(__file__).with_name("_protoc_worker.py")


@dataclass(slots=True, frozen=True)
class ProtocResult:
    status: int
    errors: str


def run_protoc(arguments: Sequence[str]) -> ProtocResult:
    """Runs protoc with command line arguments. Raises SchemaError if it crashes."""
    return _process.run(arguments)


class _ProtocProcess:
    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner_pid = 0

    def run(self, arguments: Sequence[str]) -> ProtocResult:
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(list(arguments)) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = ""
            if not line:
                self._stop()
                raise SchemaError("The Protobuf compiler crashed while it read the schema.")
            return ProtocResult(**json.loads(line))

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _running(self) -> "subprocess.Popen[str]":
        if self._owner_pid != os.getpid():  # after a fork, the process is the parent's
            self._process = None
        elif self._process is not None and self._process.poll() is not None:
            self._stop()
        if self._process is None:
            self._owner_pid = os.getpid()
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner_pid != os.getpid():
            return
        with process:  # closes its input, which ends it
            pass


_process = _ProtocProcess()
atexit.register(_process.close)
