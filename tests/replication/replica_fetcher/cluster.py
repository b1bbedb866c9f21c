"""Brokers on one simulated clock, joined by connections that carry real frames."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.replication.world import World, registration
from tests.simulation.world.clock import SimulatedLoop

from barnabas.log import LogSlice
from barnabas.metadata.delta import MetadataDelta
from barnabas.replication.replica_fetcher import ReplicaFetcherManager
from barnabas.server.api import fetch, list_offsets
from barnabas.server.timer import Timer
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.schema import Message

LATENCY_S = 0.001
BROKER_EPOCH = 5


class Broker(World):
    """A broker that follows as well as it leads."""

    def __init__(self, folder: Path, peers: "MemoryPeers", node_id: int, **settings: str) -> None:
        super().__init__(folder, node_id=node_id, **settings)
        self.timer = Timer(peers.loop)  # type: ignore[assignment]
        self.restart()
        self.delta = MetadataDelta()
        self.fetchers = ReplicaFetcherManager(
            self.partitions,
            peers.of(node_id),
            self.resolver,
            listener="PLAINTEXT",
            broker_epoch=lambda: BROKER_EPOCH,
            clock=lambda: self.now_ms,
            loop=peers.loop,
        )

    def metadata_without_broker(self, *changes: Message) -> MetadataDelta:
        self.delta = super().metadata_without_broker(*changes)
        return self.delta

    def metadata(self, *changes: Message) -> None:
        super().metadata(*changes)
        self.fetchers.apply_delta(self.delta, self.image)


class MemoryPeers:
    """Connections by port; a broker listens at 9090 + its id."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.listening: dict[int, Broker] = {}
        self.dialled: list[tuple[int, int, str]] = []
        """From which broker to which port, and what for."""
        self.sent: list[tuple[float, Message]] = []

    def of(self, node_id: int) -> Any:
        peers = self

        class Own:
            def at(self, host: str, port: int, purpose: str) -> MemoryPeer:
                peers.dialled.append((node_id, port, purpose))
                return MemoryPeer(peers, port)

        return Own()


class MemoryPeer:
    def __init__(self, peers: MemoryPeers, port: int) -> None:
        self._peers = peers
        self._port = port
        self._task: asyncio.Task[None] | None = None

    def send(self, request: Message, timeout_ms: int, on_response: Callable[[Any], None]) -> None:
        assert self._task is None, "one request at a time"
        self._peers.sent.append((self._peers.loop.time(), request))
        self._task = self._peers.loop.create_task(self._request(request, on_response))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _request(self, request: Message, on_response: Callable[[Any], None]) -> None:
        await asyncio.sleep(LATENCY_S)
        broker = self._peers.listening.get(self._port)
        if broker is None:
            self._task = None
            on_response(ConnectionRefusedError("connection rejected"))
            return
        handle: Any = list_offsets.handle
        version = 9
        if isinstance(request, FetchRequest):
            handle, version = fetch.handle, 17
        frame = memoryview(bytearray(request.write(version)))
        read, _ = type(request).read(frame, version)
        response = await handle(read, broker.call(version))
        if isinstance(response, FetchResponse):
            _bring_in_slices(response)
        frame = memoryview(bytearray(response.write(version)))
        read, _ = type(response).read(frame, version)
        await asyncio.sleep(LATENCY_S)
        self._task = None
        on_response(read)
        frame[:] = bytes(len(frame))  # what it held of records is gone


def _bring_in_slices(response: FetchResponse) -> None:
    for topic in response.responses:
        for partition in topic.partitions:
            if isinstance(partition.records, LogSlice):
                partition.records = partition.records.read()


class Cluster:
    """Brokers that get the same metadata at the same moment."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.loop = SimulatedLoop()
        asyncio.set_event_loop(self.loop)
        self.peers = MemoryPeers(self.loop)
        self.brokers = {
            node_id: Broker(folder / f"{node_id}", self.peers, node_id, **settings)
            for node_id in (1, 2)
        }
        for node_id in self.brokers:
            self.listen(node_id)
            self.change_metadata(lambda broker, node_id=node_id: self.register(broker, node_id))

    def register(
        self, broker: Broker, node_id: int, port: int = 0, *, fenced: bool = False
    ) -> None:
        record = registration(node_id, epoch=BROKER_EPOCH, fenced=fenced)
        record.end_points[0].port = port or 9090 + node_id
        broker.metadata(record)

    def listen(self, node_id: int, port: int = 0) -> None:
        self.peers.listening[port or 9090 + node_id] = self.brokers[node_id]

    def change_metadata(self, change: Callable[[Broker], object]) -> None:
        for broker in self.brokers.values():
            change(broker)

    def create_topic(
        self, name: str, partitions: int = 1, *, leader: int = 1, isr: tuple[int, ...] = (1, 2)
    ) -> None:
        self.change_metadata(
            lambda broker: broker.create_topic(
                name, partitions, replicas=(1, 2), leader=leader, isr=isr
            )
        )

    def run(self, for_ms: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(for_ms / 1000))

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.fetchers.stop()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(1)
        for broker in self.brokers.values():
            broker.partitions.close(clean=False)
        asyncio.set_event_loop(None)
        self.loop.close()
