"""Faults of processes, and requests that change connectors. Each lasts as long as its context."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.connect.chaos.connectors import ConnectorSpec
from tests.connect.chaos.worker import SESSION_TIMEOUT_S, WorkerProcess
from tests.spark.exactly_once.victims import Kind, kill
from tests.wait import wait_until

if TYPE_CHECKING:
    from tests.connect.chaos.run import ConnectChaos

STATE_TIMEOUT_S = 90.0
JVM_DOWN_TIMEOUT_S = 8.0
"""How long tasks may be RUNNING after their JVM was killed."""


@dataclass(slots=True, frozen=True)
class Fault:
    name: str
    context: AbstractContextManager[None]

    def __str__(self) -> str:
        return self.name


FaultFactory = Callable[["ConnectChaos", random.Random], Fault]


# Processes


def kill_driver(run: "ConnectChaos", rng: random.Random) -> Fault:
    worker = rng.choice(run.group.workers)

    @contextmanager
    def context() -> Iterator[None]:
        worker.kill_driver()
        yield
        run.group.start(worker)

    return Fault(f"kill -9 of the driver of {worker}", context())


def kill_instance(run: "ConnectChaos", rng: random.Random) -> Fault:
    worker = rng.choice(run.group.workers)

    @contextmanager
    def context() -> Iterator[None]:
        worker.kill_all()
        yield
        run.group.start(worker)

    return Fault(f"kill -9 of all processes of {worker}", context())


def kill_both(run: "ConnectChaos", rng: random.Random) -> Fault:
    @contextmanager
    def context() -> Iterator[None]:
        for worker in run.group.workers:
            worker.kill_driver()
        yield
        for worker in run.group.workers:
            run.group.start(worker)

    return Fault("kill -9 of all drivers", context())


def kill_child(run: "ConnectChaos", rng: random.Random) -> Fault:
    worker = rng.choice(run.group.workers)
    kind = rng.choice((Kind.JVM, Kind.WORKER, Kind.WORKER, Kind.DAEMON, Kind.SOURCE))
    takes_all = rng.random() < 0.3

    @contextmanager
    def context() -> Iterator[None]:
        pids = sorted(worker.processes()[kind])
        for pid in pids if takes_all else pids[-1:]:
            kill(pid)
        if kind is Kind.JVM and pids:
            _require_jvm_down(run, worker)
        yield

    number = "all" if takes_all else "one"
    return Fault(f"kill -9 of {number} {kind} of {worker}", context())


def _require_jvm_down(run: "ConnectChaos", worker: WorkerProcess) -> None:
    """A task is not RUNNING without a JVM, until there is another one."""

    def is_reported() -> bool:
        try:
            statuses = run.group.statuses(worker)
        except OSError:
            return True
        own = [status for status in statuses.values() if status.worker_id == worker.id]
        return not any(status.state == "RUNNING" for status in own) or bool(
            [status for status in own if status.state in ("RESTARTING", "FAILED", "UNASSIGNED")]
        )

    if run.are_brokers_up():
        try:
            wait_until(is_reported, "tasks without a JVM are not RUNNING", JVM_DOWN_TIMEOUT_S)
        except TimeoutError as too_late:
            run.add_finding(f"{worker}: {too_late}")


def pause_instance(run: "ConnectChaos", rng: random.Random) -> Fault:
    """Longer than the session timeout: it is replaced, and then continues."""
    worker = rng.choice(run.group.workers)
    with_children = rng.random() < 0.5
    pause_s = SESSION_TIMEOUT_S * rng.uniform(1.1, 2.5)

    @contextmanager
    def context() -> Iterator[None]:
        worker.pause(with_children=with_children)
        end_s = time.monotonic() + pause_s
        yield
        time.sleep(max(0.0, end_s - time.monotonic()))
        worker.resume()

    what = "all processes" if with_children else "the driver"
    return Fault(f"pause of {what} of {worker} for {pause_s:.1f} s", context())


def stop_worker(run: "ConnectChaos", rng: random.Random) -> Fault:
    worker = rng.choice(run.group.workers)

    @contextmanager
    def context() -> Iterator[None]:
        run.stop_worker(worker)
        yield
        run.group.start(worker)

    return Fault(f"clean stop of {worker}", context())


def kill_broker(run: "ConnectChaos", rng: random.Random) -> Fault:
    node = rng.choice(list(run.cluster.nodes.values()))

    @contextmanager
    def context() -> Iterator[None]:
        run.cluster.kill_node(node)
        yield
        run.cluster.start_node(node)

    return Fault(f"kill -9 of broker {node.node_id}", context())


def pause_broker(run: "ConnectChaos", rng: random.Random) -> Fault:
    node = rng.choice(list(run.cluster.nodes.values()))

    @contextmanager
    def context() -> Iterator[None]:
        node.pause()
        yield
        node.resume()

    return Fault(f"pause of broker {node.node_id}", context())


# Requests


def pause_connector(run: "ConnectChaos", rng: random.Random) -> Fault:
    return _with_target(run, rng.choice(run.specs), "pause", "PAUSED")


def stop_connector(run: "ConnectChaos", rng: random.Random) -> Fault:
    return _with_target(run, rng.choice(run.specs), "stop", "STOPPED")


def _with_target(run: "ConnectChaos", spec: ConnectorSpec, action: str, state: str) -> Fault:
    path = f"/connectors/{spec.name}"

    @contextmanager
    def context() -> Iterator[None]:
        run.group.send("PUT", f"{path}/{action}")
        _wait_for_state(run, spec.name, state)
        yield
        run.group.send("PUT", f"{path}/resume")

    return Fault(f"{action} of {spec.name}", context())


def change_settings(run: "ConnectChaos", rng: random.Random) -> Fault:
    spec = rng.choice(run.specs)
    config = spec.changed(rng)

    @contextmanager
    def context() -> Iterator[None]:
        run.group.send("PUT", f"/connectors/{spec.name}/config", config)
        yield

    changed = ", ".join(f"{name}={config[name]}" for name in spec.changes if name in config)
    return Fault(f"settings of {spec.name}: {changed}", context())


def restart_connector(run: "ConnectChaos", rng: random.Random) -> Fault:
    spec = rng.choice(run.specs)
    include_tasks = rng.choice(("true", "false"))

    @contextmanager
    def context() -> Iterator[None]:
        path = f"/connectors/{spec.name}/restart?includeTasks={include_tasks}"
        run.group.send("POST", path)
        yield

    return Fault(f"restart of {spec.name}", context())


def recreate_connector(run: "ConnectChaos", rng: random.Random) -> Fault:
    """Positions stay where they are, as in Kafka Connect."""
    spec = rng.choice(run.specs)

    @contextmanager
    def context() -> Iterator[None]:
        run.group.send("DELETE", f"/connectors/{spec.name}", expected=(204, 404))
        yield
        run.group.send("PUT", f"/connectors/{spec.name}/config", dict(spec.config))

    return Fault(f"delete of {spec.name}", context())


def alter_offsets(run: "ConnectChaos", rng: random.Random) -> Fault:
    """Stores the offsets that a connector has: a row must not come twice for that."""
    spec = rng.choice(run.specs)
    path = f"/connectors/{spec.name}"

    @contextmanager
    def context() -> Iterator[None]:
        run.group.send("PUT", f"{path}/stop")
        _wait_for_state(run, spec.name, "STOPPED")
        stored = run.group.send("GET", f"{path}/offsets")
        if stored["offsets"]:
            run.group.send("PATCH", f"{path}/offsets", stored)
        yield
        run.group.send("PUT", f"{path}/resume")

    return Fault(f"offsets of {spec.name} are stored again", context())


def _wait_for_state(run: "ConnectChaos", name: str, state: str) -> None:
    wait_until(
        lambda: run.group.state(name) == state, f"{name} is {state}", STATE_TIMEOUT_S, poll_s=0.1
    )


PROCESS_FAULTS: dict[FaultFactory, int] = {
    kill_driver: 4,
    kill_instance: 3,
    kill_both: 1,
    kill_child: 6,
    pause_instance: 5,
    stop_worker: 2,
    kill_broker: 2,
    pause_broker: 1,
}
REQUESTS: dict[FaultFactory, int] = {
    pause_connector: 2,
    stop_connector: 2,
    change_settings: 4,
    restart_connector: 2,
    recreate_connector: 2,
    alter_offsets: 2,
}
"""With their weights."""


def choose_faults(run: "ConnectChaos", rng: random.Random) -> list[Fault]:
    """Returns the next faults: one, or a request during which a process ends."""
    kinds = rng.choice(
        ((PROCESS_FAULTS,), (REQUESTS,), (PROCESS_FAULTS,), (REQUESTS, PROCESS_FAULTS))
    )
    faults = []
    for kind in kinds:
        (factory,) = rng.choices(list(kind), list(kind.values()))
        faults.append(factory(run, rng))
    return faults
