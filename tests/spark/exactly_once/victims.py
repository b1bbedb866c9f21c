"""The processes of a pipeline, found by a mark that all of them inherit."""

import os
import signal
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MARK = "BARNABAS_TRIAL"
"""A variable of their environment. Parents would not do: a JVM outlives its driver."""


class Kind(StrEnum):
    DRIVER = "driver"
    """The Python program."""
    JVM = "jvm"
    """The driver's."""
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
    """Tells Spark what there is to read."""
    OTHER = "other"
    """As those that look at options, once a query."""


def living(mark: str) -> dict[Kind, list[int]]:
    """All that live now and have the mark."""
    wanted = f"{MARK}={mark}".encode()
    seen = [_seen(entry) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    ours = {each.pid: each for each in seen if each is not None and wanted in each.environment}
    found: dict[Kind, list[int]] = {kind: [] for kind in Kind}
    for each in ours.values():
        found[_kind(each, ours.get(each.parent))].append(each.pid)
    return found


def kill(pid: int) -> bool:
    """With signal 9; whether it lived."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@dataclass(slots=True, frozen=True)
class _Seen:
    pid: int
    parent: int
    environment: list[bytes]
    words: list[str]


def _seen(entry: Path) -> _Seen | None:
    try:
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        environment = (entry / "environ").read_bytes().split(b"\0")
        words = (entry / "cmdline").read_text().split("\0")
    except OSError:
        return None  # it has just ended, or is not ours to look at
    return _Seen(int(entry.name), parent, environment, words)


_PROGRAMS = {
    "CoarseGrainedExecutorBackend": Kind.EXECUTOR,
    "Worker": Kind.MACHINE,
}
_COMMITTERS = {"python_streaming_sink_runner", "commit_data_source_write"}


def _kind(it: _Seen, parent: _Seen | None) -> Kind:
    modules = {word.rpartition(".")[2] for word in it.words}
    if _is_java(it):
        return next((kind for name, kind in _PROGRAMS.items() if name in modules), Kind.JVM)
    # Workers whose daemon has died are used on.
    is_forked = parent is None or not _is_java(parent)
    if "program" in modules:
        return Kind.DRIVER
    if "worker" in modules:
        return Kind.WORKER if is_forked else Kind.DAEMON
    if modules & _COMMITTERS and is_forked:
        return Kind.COMMITTER
    return Kind.SOURCE if "python_streaming_source_runner" in modules else Kind.OTHER


def _is_java(it: _Seen) -> bool:
    return it.words[0].endswith("java")
