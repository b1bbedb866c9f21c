"""The world of a run: hosts, a network, clients and checkers, drawn from one seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tests.simulation.cluster.clients.admin import Admin
from tests.simulation.cluster.clients.client import Client
from tests.simulation.cluster.clients.producer import Producer
from tests.simulation.cluster.clients.reader import Reader
from tests.simulation.cluster.events import Appended, ClusterEvents, PartitionKey
from tests.simulation.cluster.host import Host
from tests.simulation.cluster.layout import draw_layout, prepare
from tests.simulation.world.connections import ConnectionNetwork
from tests.simulation.world.disk import simulated_disks
from tests.simulation.world.process import Process, ProcessLoop, current_process

from barnabas.log import Log
from barnabas.metadata.image import MetadataImage

MAX_PRODUCERS = 4


class ClusterWorld:
    """The hosts, the network and the clients."""

    def __init__(self, seed: int, folder: Path, loop: ProcessLoop) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = loop
        self.folder = folder
        self.events = ClusterEvents(loop)
        self.network = ConnectionNetwork(loop, Random(self.random.randbytes(8)))
        self.layout = draw_layout(self.random)
        self.events.note("world", str(self.layout))
        self.hosts: dict[int, Host] = {}
        for settings in prepare(self.layout, folder):
            self.hosts[settings.node_id] = Host(
                settings,
                folder / f"node-{settings.node_id}",
                self.network,
                self.events,
                Random(self.random.randbytes(8)),
                loop,
            )
        self.clients_process = Process("clients", "clients", loop)
        self.admin = Admin(self, "admin")
        self.producers: list[Producer] = []
        self.readers: list[Reader] = []
        loop.set_exception_handler(self.events.on_loop_exception)

    @property
    def clients(self) -> list[Client]:
        return [self.admin, *self.producers, *self.readers]

    def add_clients(self, key: PartitionKey, topic: str) -> None:
        """Starts a producer and a reader of a partition."""
        number = len(self.producers)
        if number >= MAX_PRODUCERS:
            return
        is_idempotent = self.random.random() < 0.75
        kind = "once" if is_idempotent else "plain"
        producer = Producer(self, f"{kind}-{number}", key, idempotent=is_idempotent)
        reader = Reader(self, f"reader-{number}", key)
        self.producers.append(producer)
        self.readers.append(reader)
        self.events.note("world", f"{producer.name} and {reader.name} start with {topic}-{key[1]}")
        self.clients_process.spawn(self._run(producer))
        self.clients_process.spawn(self._run(reader))

    async def _run(self, client: Any) -> None:
        try:
            await client.run()
        except Exception as failure:
            self.events.fail(failure)

    @property
    def newest_image(self) -> MetadataImage:
        """The newest image of the running nodes."""
        images = [host.node.metadata.image for host in self.hosts.values() if host.node is not None]
        return max(images, key=lambda image: image.offset, default=MetadataImage())

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Nodes use the disks and the network of this world inside the context."""
        append = Log.append_as_leader

        def append_and_record(log: Log, batch: Any, epoch: int, *args: Any, **kwargs: Any) -> Any:
            appended = append(log, batch, epoch, *args, **kwargs)
            if not appended.duplicate:
                self.events.record(
                    Appended(
                        current_process().host,
                        log.topic,
                        log.partition,
                        log.topic_id,
                        epoch,
                        appended.first_offset,
                        appended.last_offset,
                    )
                )
            return appended

        disks = {host.name: host.disk for host in self.hosts.values()}
        with (
            simulated_disks(disks),
            patch("barnabas.net.peer.ConnectAttempt", self.network.connect),
            patch("barnabas.net.peer.FrameTransport", self.network.transport),
            patch.object(Log, "append_as_leader", append_and_record),
        ):
            yield
