"""The world of a run: hosts, a network, clients and checkers, drawn from one seed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from tests.simulation.cluster.clients.admin import Admin
from tests.simulation.cluster.clients.compacted_reader import CompactedReader
from tests.simulation.cluster.clients.keyed_records import KeyedProducer
from tests.simulation.cluster.clients.producer import Producer
from tests.simulation.cluster.clients.reader import Reader
from tests.simulation.cluster.clients.transactional_producer import TransactionalProducer
from tests.simulation.cluster.compacted_topic import CompactedTopic
from tests.simulation.cluster.events import ClusterEvents, PartitionKey
from tests.simulation.cluster.host import Host
from tests.simulation.cluster.layout import COMPACTED_TOPIC, draw_layout, prepare
from tests.simulation.cluster.log_hooks import recorded_logs
from tests.simulation.world.connections import ConnectionNetwork
from tests.simulation.world.disk import simulated_disks
from tests.simulation.world.process import Process, ProcessLoop

from barnabas.metadata.image import MetadataImage

MAX_PRODUCERS = 4
CLEANER_CHECK_MS = 100
"""How often a node looks for logs to clean."""


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
        self.compacted_topic = CompactedTopic.draw(self.random)
        self.producers: list[Producer | TransactionalProducer] = []
        self.readers: list[Reader] = []
        loop.set_exception_handler(self.events.on_loop_exception)

    def add_clients(self, key: PartitionKey, topic: str) -> None:
        """Starts the producers and the reader of a partition."""
        if topic == COMPACTED_TOPIC:
            assert self.compacted_topic is not None
            keys = self.compacted_topic.keys
            self._start_clients(
                topic,
                [
                    KeyedProducer(self, "once-keyed", key, keys),
                    TransactionalProducer(self, "transactions", key, keys),
                ],
                CompactedReader(self, "scanner", key),
            )
        elif len(self.producers) < MAX_PRODUCERS:
            producers = [
                self._new_producer(key, len(self.producers) + number)
                for number in range(self.random.randint(1, 2))
            ]
            self._start_clients(topic, producers, Reader(self, f"reader-{len(self.readers)}", key))

    def _new_producer(self, key: PartitionKey, number: int) -> Producer:
        is_idempotent = self.random.random() < 0.75
        kind = "once" if is_idempotent else "plain"
        return Producer(self, f"{kind}-{number}", key, idempotent=is_idempotent)

    def _start_clients(
        self, topic: str, producers: Sequence[Producer | TransactionalProducer], reader: Reader
    ) -> None:
        self.producers += producers
        self.readers.append(reader)
        names = ", ".join(client.name for client in (*producers, reader))
        self.events.note("world", f"{names} start with {topic}-{reader.key[1]}")
        for client in (*producers, reader):
            self.clients_process.spawn(self._run(client))

    async def _run(self, client: Any) -> None:
        try:
            await client.run()
        except Exception as failure:
            self.events.fail(failure)

    @property
    def newest_image(self) -> MetadataImage:
        """The newest image that any node has had: nodes that start have none yet."""
        return self.events.newest_image

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Nodes use the disks and the network of this world inside the context."""
        disks = {host.name: host.disk for host in self.hosts.values()}
        with (
            simulated_disks(disks),
            recorded_logs(self.events),
            patch("barnabas.net.peer.ConnectAttempt", self.network.connect),
            patch("barnabas.net.peer.FrameTransport", self.network.transport),
            patch("barnabas.replication.maintenance_tasks.CLEANER_CHECK_MS", CLEANER_CHECK_MS),
        ):
            yield
