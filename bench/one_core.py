"""Pins the broker and the driver to a core each, so that requests/s are those of one core."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


@contextlib.contextmanager
def one_core_each(pids: Iterable[int]) -> Iterator[None]:
    """Pin all threads of the processes to the first core, and this process to the second.

    Without a second core, nothing is pinned.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        yield
        return
    pids = list(pids)
    _pin(pids, {cores[0]})
    _pin([os.getpid()], {cores[1]})
    try:
        yield
    finally:
        _pin([*pids, os.getpid()], set(cores))


def _pin(pids: Iterable[int], cores: set[int]) -> None:
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # the thread has ended
                os.sched_setaffinity(int(thread.name), cores)
