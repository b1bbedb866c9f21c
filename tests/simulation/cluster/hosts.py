"""A host: a machine with a disk, on which the process of one node lives, over and over again."""

import asyncio
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.cluster.disks import Disk, SimulatedThreads
from tests.simulation.cluster.happenings import Committed, Happenings, Led, Replaced
from tests.simulation.cluster.listening import ListeningNetwork
from tests.simulation.cluster.network import Network
from tests.simulation.cluster.processes import Process, ProcessLoop, by_nobody
from tests.simulation.events import Violation

from barnabas.config import BrokerSettings
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.node import Node
from barnabas.node.storage import NodeStorage
from barnabas.node.environment import Environment
from barnabas.raft import CommittedBatch
from barnabas.replication import Partition, Partitions


class State(Enum):
    """Of a host."""

    DOWN = auto()
    UP = auto()
    STOPPING = auto()


class Host:
    """Where node `node_id` runs, if it does."""

    def __init__(
        self,
        settings: BrokerSettings,
        folder: Path,
        network: Network,
        events: Happenings,
        random: Random,
        loop: ProcessLoop,
    ) -> None:
        self.node_id = settings.node_id
        self.name = f"node-{settings.node_id}"
        self.settings = settings
        self.folder = folder
        self.disk = Disk(random)
        self.disk.died = self._die_in_mid_write
        self.state = State.DOWN
        self.lives = 0
        self.node: WatchedNode | None = None
        self.past: list[object] = []
        """The dead are kept, or Python would clean up after them at moments of its own."""
        self.process: Process | None = None
        self._network = network
        self._events = events
        self._random = random
        self._loop = loop
        self._stop: asyncio.Event | None = None

    # Life and death

    def start(self) -> None:
        self.lives += 1
        self.state = State.UP
        self._network.power_on(self.name)
        self._events.note(self.name, f"starts, life {self.lives}")
        self.process = Process(f"{self.name}/{self.lives}", self.name, self._loop)
        self._stop = asyncio.Event()
        self.process.spawn(self._live(self.process, self._stop))

    async def _live(self, process: Process, stop: asyncio.Event) -> None:
        try:
            node = await WatchedNode.start(self.settings, self._surroundings())
            self._events.note(self.name, "serves")
            await node.run_until(stop)
            await node.stop()
        except Exception as failure:
            violation = Violation(f"{self.name} cannot go on: {failure}")
            violation.__cause__ = failure
            self._events.fail(violation, "Log")
        self._events.note(self.name, "has ended")
        self._end(process)

    def _surroundings(self) -> "HostSurroundings":
        network, disk = self._network, self.disk
        threads: Any = lambda loop: SimulatedThreads(loop, disk)  # noqa: E731
        listening: Any = partial(ListeningNetwork, network)
        return HostSurroundings(
            clock=lambda: self._loop.now_ms,
            random=Random(self._random.randbytes(8)),
            threads=threads,
            network=listening,
            hold_connection=network.hold_connection,
            host=self,
        )

    def stop(self) -> None:
        """As by SIGTERM."""
        assert self.process is not None
        assert self._stop is not None
        self._events.note(self.name, "is asked to end")
        self.state = State.STOPPING
        self.process.submit(self._stop.set)

    def kill(self, *, power_cut: bool = False) -> None:
        assert self.process is not None
        self._events.note(self.name, "loses its power" if power_cut else "is killed")
        self._end(self.process, power_cut=power_cut)
        if power_cut:
            lost_bytes = self.disk.lose_power(self.folder)
            self._events.note(self.name, f"has lost {lost_bytes} bytes")

    def _die_in_mid_write(self) -> None:
        """What the process is at is about to be broken off; its files are let go after that."""
        assert self.process is not None
        self._events.note(self.name, "is killed in the middle of a write")
        self.process.kill()
        by_nobody(self._loop, 0, self._end, self.process)

    def _end(self, process: Process, *, power_cut: bool = False) -> None:
        if process is not self.process or self.state is State.DOWN:
            return
        process.kill()
        self.disk.writes_left = None
        self._network.process_died(process, power_cut=power_cut)
        if self.node is not None:
            self.node.let_go()
            self.past.append(self.node)
        self.node = None
        self.state = State.DOWN

    # What there is to see

    @property
    def is_up(self) -> bool:
        return self.state is not State.DOWN

    @property
    def partitions(self) -> Partitions | None:
        """Of the broker, once there is one."""
        side = self.node._broker_role if self.node is not None else None
        return side.partitions if side is not None else None

    @property
    def broker_epoch(self) -> int:
        side = self.node._broker_role if self.node is not None else None
        return side.epoch if side is not None else -1

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        """A replica here that has been opened."""
        return self.partitions._by_id.get((topic_id, index)) if self.partitions else None


@dataclass(slots=True, frozen=True)
class HostSurroundings(Environment):
    """What a simulated node meets, and where it runs."""

    host: Any = None


class WatchedNode(Node):
    """A node that is real in every part, and tells what it learns of the quorum."""

    def __init__(
        self, settings: BrokerSettings, storage: NodeStorage, surroundings: Environment
    ) -> None:
        assert isinstance(surroundings, HostSurroundings)
        self._host: Host = surroundings.host
        self._host.node = self
        self._directories = dict.fromkeys((*storage.directories, storage.metadata))
        super().__init__(settings, storage, surroundings)
        self.metadata.subscribe(self._tell_of)

    def let_go(self) -> None:
        """The kernel closes the files of a process that ends."""
        for directory in self._directories:
            directory.close(clean=False)

    def on_committed(self, batches: Any) -> None:
        super().on_committed(batches)
        self._host._events.tell(Committed(self._host, list(batches)))

    def on_snapshot(self, batches: Any) -> None:
        taken: list[CommittedBatch] = list(batches)
        super().on_snapshot(taken)
        self._host._events.tell(Replaced(self._host, self.metadata.image.offset))

    def on_became_leader(self, epoch: int) -> None:
        self._host._events.tell(Led(self._host, epoch, self.metadata.image.offset))
        super().on_became_leader(epoch)

    def _tell_of(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self._host._events.published(self._host, delta, image)
