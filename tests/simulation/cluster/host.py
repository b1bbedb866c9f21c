"""A host: a machine with a disk that runs the process of one node, again and again."""

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.cluster.events import (
    BecameController,
    ClusterEvents,
    Committed,
    SnapshotLoaded,
)
from tests.simulation.cluster.layout import COMPACTED_TOPIC
from tests.simulation.cluster.socket_server import SimulatedSocketServer
from tests.simulation.world.connections import ConnectionNetwork
from tests.simulation.world.disk import SimulatedDisk, SimulatedDiskThreads
from tests.simulation.world.events import Violation
from tests.simulation.world.process import Process, ProcessLoop

from barnabas.config import BrokerSettings
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.environment import Environment
from barnabas.node.node import Node
from barnabas.node.storage import NodeStorage
from barnabas.raft import CommittedBatch
from barnabas.replication import Partition, Partitions
from barnabas.security.authentication.jwks import Documents


class State(Enum):
    """The state of a host."""

    DOWN = auto()
    UP = auto()
    STOPPING = auto()


class Host:
    """The host of node `node_id`."""

    def __init__(
        self,
        settings: BrokerSettings,
        folder: Path,
        network: ConnectionNetwork,
        events: ClusterEvents,
        random: Random,
        loop: ProcessLoop,
    ) -> None:
        self.node_id = settings.node_id
        self.name = f"node-{settings.node_id}"
        self.settings = settings
        self.folder = folder
        self.disk = SimulatedDisk(random)
        self.disk.on_killed = self._on_killed_while_writing
        self.disk.sync_all(folder)
        self.state = State.DOWN
        self.runs = 0
        self.node: ObservedNode | None = None
        self.former_nodes: list[object] = []
        """Referenced, or Python would finalize them at random moments."""
        self.process: Process | None = None
        self._network = network
        self._events = events
        self._random = random
        self._loop = loop
        self._stop: asyncio.Event | None = None

    # Start and kill

    def start(self) -> None:
        self.runs += 1
        self.state = State.UP
        self._network.power_on(self.name)
        self._events.note(self.name, f"starts, run {self.runs}")
        self.process = Process(f"{self.name}/{self.runs}", self.name, self._loop)
        self._stop = asyncio.Event()
        self.process.spawn(self._run(self.process, self._stop))

    async def _run(self, process: Process, stop: asyncio.Event) -> None:
        try:
            node = await ObservedNode.start(self.settings, self._environment())
            self._events.note(self.name, "serves requests")
            await node.run_until(stop)
            await node.stop()
        except Exception as failure:
            violation = Violation(f"{self.name} failed: {failure}")
            violation.__cause__ = failure
            self._events.fail(violation, "Log")
        self._events.note(self.name, "has stopped")
        self._end(process)

    def _environment(self) -> "HostEnvironment":
        network, disk = self._network, self.disk
        disk_threads: Any = lambda loop: SimulatedDiskThreads(loop, disk)  # noqa: E731
        socket_server: Any = partial(SimulatedSocketServer, network)
        return HostEnvironment(
            clock=lambda: self._loop.now_ms,
            random=Random(self._random.randbytes(8)),
            threads=disk_threads,
            network=socket_server,
            hold_connection=network.hold_connection,
            host=self,
        )

    def stop(self) -> None:
        """As SIGTERM does."""
        assert self.process is not None
        assert self._stop is not None
        self._events.note(self.name, "is shut down")
        self.state = State.STOPPING
        self.process.submit(self._stop.set)

    def kill(self, *, power_loss: bool = False) -> None:
        assert self.process is not None
        self._events.note(self.name, "loses power" if power_loss else "is killed")
        self._end(self.process, power_loss=power_loss)
        if power_loss:
            # A compacted log may have gaps, and so cannot tell what is missing between segments.
            lost_bytes = self.disk.lose_power(self.folder, in_order=[f"{COMPACTED_TOPIC}-0"])
            self._events.note(self.name, f"has lost {lost_bytes} bytes")

    def _on_killed_while_writing(self) -> None:
        """The current step of the process is about to be aborted; then its files are closed."""
        assert self.process is not None
        self._events.note(self.name, "is killed while it writes")
        self.process.kill()
        self._loop.call_without_process(0, self._end, self.process)

    def _end(self, process: Process, *, power_loss: bool = False) -> None:
        if process is not self.process or self.state is State.DOWN:
            return
        process.kill()
        self.disk.disarm()
        self._network.on_process_killed(process, power_loss=power_loss)
        if self.node is not None:
            self.node.close_files()
            self.former_nodes.append(self.node)
        self.node = None
        self.state = State.DOWN

    # For checkers

    @property
    def is_up(self) -> bool:
        return self.state is not State.DOWN

    @property
    def partitions(self) -> Partitions | None:
        """The partitions of the broker, once it has started."""
        role = self.node._broker_role if self.node is not None else None
        return role.partitions if role is not None else None

    @property
    def broker_epoch(self) -> int:
        role = self.node._broker_role if self.node is not None else None
        return role.epoch if role is not None else -1

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """Returns the replica of this host, if it is open."""
        return self.partitions._by_id.get((topic_id, index)) if self.partitions else None


@dataclass(slots=True, frozen=True)
class HostEnvironment(Environment):
    """The environment of a simulated node, and its host."""

    host: Any = None


class ObservedNode(Node):
    """A real node that records what it reads from the quorum."""

    def __init__(
        self,
        settings: BrokerSettings,
        storage: NodeStorage,
        environment: Environment,
        key_documents: Documents,
    ) -> None:
        assert isinstance(environment, HostEnvironment)
        self._host: Host = environment.host
        self._host.node = self
        self._directories = dict.fromkeys((*storage.directories, storage.metadata))
        super().__init__(settings, storage, environment, key_documents)
        self.metadata.subscribe(self._on_published)

    def close_files(self) -> None:
        """Closes the files, as the kernel does for a process that ends."""
        for directory in self._directories:
            directory.close(clean=False)

    def on_committed(self, batches: Any) -> None:
        super().on_committed(batches)
        self._host._events.record(Committed(self._host, list(batches)))

    def on_snapshot(self, batches: Any) -> None:
        snapshot: list[CommittedBatch] = list(batches)
        super().on_snapshot(snapshot)
        self._host._events.record(SnapshotLoaded(self._host, self.metadata.image.offset))

    def on_became_leader(self, epoch: int) -> None:
        self._host._events.record(BecameController(self._host, epoch, self.metadata.image.offset))
        super().on_became_leader(epoch)

    def _on_published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._host._events.on_image(self._host, delta, image)
