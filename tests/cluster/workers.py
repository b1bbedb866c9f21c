"""Worker processes with journals, which tests kill and stop."""

import contextlib
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from tests.wait import wait_until

ROOT = Path(__file__).parents[2]


class Worker:
    """A process of a module; its last argument is the journal that it writes."""

    def __init__(self, module: str, arguments: list[str], journal: Path) -> None:
        self.journal = journal
        self._lines: list[list[bytes]] = []
        self._read_to = 0
        self._log = journal.with_suffix(".log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments, str(journal)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )

    def lines(self) -> list[list[bytes]]:
        """Returns the fields of every complete line of the journal."""
        if self.journal.exists():
            with self.journal.open("rb") as journal:
                journal.seek(self._read_to)
                text = journal.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read_to += len(whole)
            self._lines += [line.split(b" ") for line in whole.splitlines()]
        return self._lines

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> int:
        """Kills the process if it runs; returns its status."""
        self._process.kill()
        self._log.close()
        return self._process.wait()

    def wait(self, deadline_s: float = 30) -> int:
        return self._process.wait(deadline_s)

    def stop(self) -> None:
        """Stops the process at its stop point."""
        self._process.send_signal(signal.SIGUSR1)
        wait_until(self._is_stopped, f"{self.journal.name} is stopped", poll_s=0.01)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def _is_stopped(self) -> bool:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    def output(self) -> str:
        return self.journal.with_suffix(".log").read_text(errors="replace")


class Workers:
    """A number of slots with a worker in each, which can be replaced."""

    def __init__(self, module: str, arguments: list[str], slots: int, directory: Path) -> None:
        self._module = module
        self._arguments = arguments
        self._directory = directory
        self._retired: list[Worker] = []
        self.slots = {slot: self._start(slot) for slot in range(slots)}

    def replace(self, slot: int) -> Worker:
        """Kills the worker of a slot and starts the next one."""
        self.slots[slot].end()
        return self.supersede(slot)

    def supersede(self, slot: int) -> Worker:
        """Starts the next worker of a slot; the current one keeps running."""
        self._retired.append(self.slots[slot])
        self.slots[slot] = self._start(slot)
        return self.slots[slot]

    def restart_ended(self) -> None:
        """Starts the next worker of every slot whose worker has ended."""
        for slot, worker in list(self.slots.items()):
            if not worker.is_alive():
                self.supersede(slot)

    def all(self) -> list[Worker]:
        """Returns all workers, also ended ones."""
        return [*self._retired, *self.slots.values()]

    def end(self) -> None:
        for worker in self.all():
            with contextlib.suppress(ProcessLookupError):
                worker.end()

    def output(self) -> str:
        """Returns the end of the output of every worker."""
        return "\n".join(filter(None, (worker.output()[-2_000:] for worker in self.all())))

    def _start(self, slot: int) -> Worker:
        journal = self._directory / f"worker-{slot}-{len(self._retired)}"
        return Worker(self._module, [*self._arguments, str(slot)], journal)


def shuffled(faults: Sequence[str], count: int, moments: random.Random) -> list[str]:
    """Returns `count` faults in random order, each about equally often."""
    selected = list(islice(cycle(faults), count))
    moments.shuffle(selected)
    return selected
