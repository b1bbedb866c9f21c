"""The processes of a pipeline, found below the one that was started."""

import os
import signal
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    DRIVER = "driver"
    """The Python program."""
    JVM = "jvm"
    DAEMON = "daemon"
    """Forks Spark's Python workers."""
    WORKER = "worker"


def below(pid: int) -> dict[Kind, list[int]]:
    """What lives now, with the one given."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found: dict[Kind, list[int]] = {kind: [] for kind in Kind}
    found[Kind.DRIVER] = [pid]
    jvms = [child for child in children.get(pid, ()) if _runs(child, "java")]
    found[Kind.JVM] = jvms
    found[Kind.DAEMON] = [child for jvm in jvms for child in children.get(jvm, ())]
    found[Kind.WORKER] = [
        child for daemon in found[Kind.DAEMON] for child in children.get(daemon, ())
    ]
    return found


def kill(pid: int) -> bool:
    """With signal 9; whether it lived."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None  # it has just ended


def _runs(pid: int, program: str) -> bool:
    try:
        return program in Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    except OSError:
        return False
