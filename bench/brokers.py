"""The two brokers under test, with the measurements of $PEERS/bench-broker."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from bench.one_core import one_core_each

ROOT = Path(__file__).parents[1]
PEERS = Path(os.environ.get("PEERS", ROOT.parent / "shared" / "peers"))


def load_peer_bench() -> ModuleType:
    loader = SourceFileLoader("peer_bench", str(PEERS / "bench-broker"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True  # do not write to the peers' folder
    loader.exec_module(module)
    return module


peer_bench = load_peer_bench()


class BrokerUnderTest(peer_bench.Bench):  # type: ignore[misc, name-defined]
    """A broker that is started, loaded and measured; its figures are in `results`."""

    name: str

    def __init__(self, directory: Path, port: int, *, scale: float) -> None:
        self.directory = directory / self.name.lower()
        self.port = port
        self.directory.mkdir(parents=True, exist_ok=True)
        start, stop = self.commands()
        super().__init__(
            SimpleNamespace(
                bootstrap=f"127.0.0.1:{port}",
                pid=None,
                start=start,
                stop=stop,
                data=str(self.data),
                scale=scale,
                repeat=1,
            )
        )

    @property
    def data(self) -> Path:
        return self.directory / "log"

    def commands(self) -> tuple[str, str]:
        """Returns the shell commands that start the broker and print its pid, and that stop it."""
        raise NotImplementedError

    def count(self, records: int) -> int:
        return max(int(records * self.options.scale), 10)

    def ensure_started(self) -> None:
        if self.process is None:
            self.start()

    def kill(self) -> None:
        """Ends the process without a chance to flush or to write a checkpoint."""
        os.kill(self.process.pid, signal.SIGKILL)
        while is_running(self.process.pid):
            time.sleep(0.01)
        self.process = None

    def read_bytes(self) -> int:
        """Returns how much the process has read so far, from files and sockets."""
        io = Path(f"/proc/{self.process.pid}/io").read_text()
        return int(io.split("rchar:")[1].split()[0])

    def reset_peak_rss(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6

    def one_core(self) -> contextlib.AbstractContextManager[None]:
        """Gives the broker one core, and the driver another."""
        return one_core_each(self.process.tree())

    @contextlib.contextmanager
    def cpu_per_request(self, figures: dict[str, float], requests: int) -> Iterator[None]:
        """Add the requests per second and the broker's CPU for each to the figures."""
        cpu_s, began_s = self.process.cpu_s(), time.perf_counter()
        yield
        seconds = time.perf_counter() - began_s
        figures["requests_per_s"] = requests / seconds
        figures["cpu_us_per_request"] = (self.process.cpu_s() - cpu_s) / requests * 1e6


class Kafka(BrokerUnderTest):
    name = "Kafka"

    def commands(self) -> tuple[str, str]:
        script = PEERS / "kafka"
        return (
            f"{script} start --port {self.port} --dir {self.directory}",
            f"{script} stop --dir {self.directory}",
        )

    def kill(self) -> None:
        super().kill()
        (self.directory / "pid").unlink()  # a stop would have removed it


class Barnabas(BrokerUnderTest):
    name = "Barnabas"

    _child: subprocess.Popen[Any] | None = None

    def commands(self) -> tuple[str, str]:
        # Kafka's process has no schema registry either.
        up = f"up --host 127.0.0.1 --port {self.port} --dir {self.data} --no-registry"
        return f"{sys.executable} -m barnabas.cli {up}", ""

    def start(self, partitions: int = 0) -> float:
        """Returns the time from before the process exists until it responds."""
        began_s = time.perf_counter()
        with (self.directory / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                self.options.start.split(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_user_environment(),
            )
        while True:
            with contextlib.suppress(OSError, peer_bench.struct.error):
                if peer_bench.metadata(self.address) >= partitions:
                    break
            if self._child.poll() is not None:
                raise SystemExit(f"barnabas up ended, see {self.directory / 'server.log'}")
            time.sleep(0.005)
        ready_s = time.perf_counter()
        self.process = peer_bench.Process(self._child.pid)
        return ready_s - began_s

    def kill(self) -> None:
        super().kill()
        assert self._child is not None
        self._child.wait()
        self._child = None

    def stop(self) -> None:
        if self._child is not None:
            self._child.terminate()
            self._child.wait(60)
        self._child = self.process = None


def is_running(pid: int) -> bool:
    """Returns False also for a process that has ended and that its parent has not waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _user_environment() -> dict[str, str]:
    """Returns the environment of a user, whose Python writes bytecode files."""
    return {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}


_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"

BROKERS: list[type[BrokerUnderTest]] = [Kafka, Barnabas]
