"""The processes of a pipeline, found by an environment variable that all of them inherit."""

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MARK = "BARNABAS_TRIAL"
"""The variable. The process tree would not do: a JVM outlives its driver."""


class Kind(StrEnum):
    DRIVER = "driver"
    """The Python program."""
    JVM = "jvm"
    """The JVM of the driver."""
    EXECUTOR = "executor"
    """A JVM that runs tasks, on a cluster."""
    MACHINE = "machine"
    """A worker of a cluster, whose executors end with it."""
    DAEMON = "daemon"
    """Forks the workers that run tasks."""
    WORKER = "worker"
    COMMITTER = "committer"
    """Runs `commit` and `abort` of the sink."""
    SOURCE = "source"
    """Plans the micro-batches of the source."""
    OTHER = "other"
    """For example those that parse options, once for each query."""


def living(mark: str) -> dict[Kind, list[int]]:
    """Returns the ids of all running processes with the mark."""
    variable = f"{MARK}={mark}".encode()
    processes = [
        _process_info(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal()
    ]
    marked = {
        process.pid: process
        for process in processes
        if process is not None and variable in process.environment
    }
    pids: dict[Kind, list[int]] = {kind: [] for kind in Kind}
    for process in marked.values():
        pids[_kind(process, marked.get(process.parent))].append(process.pid)
    return pids


def kill(pid: int) -> bool:
    """Kill with signal 9; returns whether the process existed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@dataclass(slots=True, frozen=True)
class _ProcessInfo:
    pid: int
    parent: int
    environment: list[bytes]
    words: list[str]


def _process_info(entry: Path) -> _ProcessInfo | None:
    try:
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        environment = (entry / "environ").read_bytes().split(b"\0")
        words = (entry / "cmdline").read_text().split("\0")
    except OSError:
        return None  # it has just ended, or belongs to another user
    return _ProcessInfo(int(entry.name), parent, environment, words)


_PROGRAMS = {
    "CoarseGrainedExecutorBackend": Kind.EXECUTOR,
    "Worker": Kind.MACHINE,
}
_COMMITTERS = {"python_streaming_sink_runner", "commit_data_source_write"}


def _kind(it: _ProcessInfo, parent: _ProcessInfo | None) -> Kind:
    modules = {word.rpartition(".")[2] for word in it.words}
    if _is_java(it):
        return next((kind for name, kind in _PROGRAMS.items() if name in modules), Kind.JVM)
    # Spark keeps using workers whose daemon has died.
    is_forked = parent is None or not _is_java(parent)
    if "program" in modules:
        return Kind.DRIVER
    if "worker" in modules:
        return Kind.WORKER if is_forked else Kind.DAEMON
    if modules & _COMMITTERS and is_forked:
        return Kind.COMMITTER
    return Kind.SOURCE if "python_streaming_source_runner" in modules else Kind.OTHER


def _is_java(it: _ProcessInfo) -> bool:
    return it.words[0].endswith("java")
