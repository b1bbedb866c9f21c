"""The base of the clients: metadata, requests, backoff."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.cluster.events import PartitionKey
from tests.simulation.cluster.layout import CLIENTS_PORT, host

from barnabas.net import SocketPeers
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld

BACKOFF_MS = (10, 100)
METADATA_TIMEOUT_MS = 700


@dataclass(slots=True, frozen=True)
class PartitionLeader:
    """A partition and its leader, in the metadata of a client."""

    topic: str
    key: PartitionKey
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]


@dataclass(slots=True)
class ClientMetadata:
    """The leaders of partitions, with the newest epoch that the client has seen."""

    partitions: dict[PartitionKey, PartitionLeader] = field(default_factory=dict)

    def update(self, response: MetadataResponse) -> None:
        for topic in response.topics:
            if topic.error_code or topic.is_internal or topic.name is None:
                continue
            for partition in topic.partitions:
                key = (topic.topic_id, partition.partition_index)
                existing = self.partitions.get(key)
                if existing is None or existing.leader_epoch <= partition.leader_epoch:
                    replicas = tuple(partition.replica_nodes)
                    self.partitions[key] = PartitionLeader(
                        topic.name, key, partition.leader_id, partition.leader_epoch, replicas
                    )


class Client:
    """Sends one request at a time, on connections of its own."""

    def __init__(self, world: "ClusterWorld", name: str) -> None:
        self.world = world
        self.name = name
        self.random = Random(world.random.randbytes(8))
        self.metadata = ClientMetadata()
        self.pending = 0
        """Requests without a response."""
        self._peers = SocketPeers(world.loop, name)

    @property
    def now_ms(self) -> int:
        return self.world.loop.now_ms

    async def send_request(self, node_id: int, request: Message, timeout_ms: int) -> Any:
        """Returns the response. Raises OSError if there is none."""
        response: asyncio.Future[Any] = self.world.loop.create_future()
        self.pending += 1

        def on_response(outcome: Any) -> None:
            self.pending -= 1
            if not response.done():
                response.set_result(self.copy_response(outcome))

        peer = self._peers.at(host(node_id), CLIENTS_PORT, self.name)
        peer.send(request, timeout_ms, on_response)
        outcome = await response
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def copy_response(self, outcome: Any) -> Any:
        """Copies the parts of a response whose memory is reused."""
        return outcome

    async def refresh_metadata(self) -> None:
        """Requests metadata of any broker, which may be down or have old metadata."""
        broker = self.random.choice(self.world.layout.brokers)
        try:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            self.metadata.update(await self.send_request(broker, request, METADATA_TIMEOUT_MS))
        except OSError:
            pass

    async def back_off(self) -> None:
        await asyncio.sleep(self.random.randint(*BACKOFF_MS) / 1000)

    async def find_leader(self, key: PartitionKey) -> PartitionLeader:
        """Returns the partition once it has a known leader."""
        while True:
            partition = self.metadata.partitions.get(key)
            if partition is not None and partition.leader >= 0:
                return partition
            await self.back_off()
            await self.refresh_metadata()


def error_name(code: int) -> str:
    return ErrorCode.of(code).name
