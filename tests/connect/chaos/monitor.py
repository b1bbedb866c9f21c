"""Looks at the states that workers report, all the time: a state must be true soon."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence

from tests.connect.chaos.group import ConnectGroup
from tests.connect.chaos.worker import SESSION_TIMEOUT_S, WorkerProcess

POLL_S = 0.4
GRACE_S = SESSION_TIMEOUT_S + 8.0
"""How long a connector may be RUNNING on a worker that is dead or paused: the group has to notice,
a leader to be elected and to write."""


class StateMonitor(threading.Thread):
    """`findings` are states that were false for too long, while brokers and a worker could say."""

    def __init__(self, group: ConnectGroup, are_brokers_up: Callable[[], bool]) -> None:
        super().__init__(name="states", daemon=True)
        self.findings: list[str] = []
        self.longest_s = 0.0
        """The longest time that a connector of a dead worker was RUNNING."""
        self._group = group
        self._are_brokers_up = are_brokers_up
        self._false_since_s: dict[tuple[str, str], float] = {}
        self._reported: set[tuple[str, str]] = set()
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(POLL_S):
            healthy = self._group.healthy()
            if not self._are_brokers_up() or not healthy:
                self._false_since_s.clear()
                continue
            try:
                false = set(self._false_states(healthy))
            except OSError:
                continue
            self._add(false, time.monotonic())

    def _false_states(self, healthy: Sequence[WorkerProcess]) -> Iterator[tuple[str, str]]:
        """A worker that has been started again runs nothing before it is healthy."""
        living = {worker.id for worker in healthy}
        for name, status in self._group.statuses(healthy[0]).items():
            if status.state == "RUNNING" and status.worker_id not in living:
                yield name, status.worker_id

    def _add(self, false: set[tuple[str, str]], now_s: float) -> None:
        self._false_since_s = {key: self._false_since_s.get(key, now_s) for key in false}
        for key, since_s in self._false_since_s.items():
            self.longest_s = max(self.longest_s, now_s - since_s)
            if now_s - since_s > GRACE_S and key not in self._reported:
                self._reported.add(key)
                name, worker_id = key
                self.findings.append(
                    f"{name} is RUNNING on {worker_id}, which has not lived for {GRACE_S:g} s"
                )
