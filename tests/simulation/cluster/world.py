"""One run: hosts, a network, clients and checkers, all drawn from one seed."""

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
from tests.simulation.cluster.disks import Killed, simulated_disks
from tests.simulation.cluster.happenings import Appended, Happenings, Key
from tests.simulation.cluster.hosts import Host
from tests.simulation.cluster.layout import draw_layout, prepare
from tests.simulation.cluster.network import Network
from tests.simulation.cluster.processes import Process, ProcessLoop, current_process

from barnabas.log import Log
from barnabas.metadata.image import MetadataImage

MAX_PRODUCERS = 4


class World:
    """Everything there is."""

    def __init__(self, seed: int, folder: Path, loop: ProcessLoop) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = loop
        self.folder = folder
        self.events = Happenings(loop)
        self.network = Network(loop, Random(self.random.randbytes(8)))
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
        loop.set_exception_handler(self._escaped)

    @property
    def clients(self) -> list[Client]:
        return [self.admin, *self.producers, *self.readers]

    def join(self, key: Key, topic: str) -> None:
        """Somebody writes to a partition, and somebody reads it."""
        number = len(self.producers)
        if number >= MAX_PRODUCERS:
            return
        is_idempotent = self.random.random() < 0.75
        kind = "once" if is_idempotent else "plain"
        producer = Producer(self, f"{kind}-{number}", key, idempotent=is_idempotent)
        reader = Reader(self, f"reader-{number}", key)
        self.producers.append(producer)
        self.readers.append(reader)
        self.events.note("world", f"{producer.name} and {reader.name} come to {topic}-{key[1]}")
        self.clients_process.spawn(self._run(producer))
        self.clients_process.spawn(self._run(reader))

    async def _run(self, client: Any) -> None:
        try:
            await client.run()
        except Exception as failure:
            self.events.fail(failure)

    @property
    def newest_image(self) -> MetadataImage:
        """What is committed, as far as any node that lives knows."""
        images = [each.node.metadata.image for each in self.hosts.values() if each.node is not None]
        return max(images, key=lambda image: image.offset, default=MetadataImage())

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """The parts of the system that a process meets by name are this world's."""
        append = Log.append_as_leader

        def append_and_tell(log: Log, batch: Any, epoch: int, *args: Any, **kwargs: Any) -> Any:
            appended = append(log, batch, epoch, *args, **kwargs)
            if not appended.duplicate:
                self.events.tell(
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
            patch("barnabas.net.peer.ConnectAttempt", self.network.dial),
            patch("barnabas.net.peer.FrameTransport", self.network.link),
            patch.object(Log, "append_as_leader", append_and_tell),
        ):
            yield

    def _escaped(self, _: object, context: dict[str, Any]) -> None:
        failure = context.get("exception")
        if not isinstance(failure, Killed):
            self.events.fail(failure or RuntimeError(str(context["message"])))
