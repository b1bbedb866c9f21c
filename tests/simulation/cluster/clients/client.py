"""What every client of the cluster does: find out who leads, ask, be disappointed."""

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from tests.simulation.cluster.happenings import Key
from tests.simulation.cluster.layout import CLIENTS_PORT, host

from barnabas.net import SocketPeers
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from tests.simulation.cluster.world import World

BACKOFF_MS = (10, 100)
METADATA_TIMEOUT_MS = 700


@dataclass(slots=True, frozen=True)
class Led:
    """A partition as a client knows it."""

    topic: str
    key: Key
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]


@dataclass(slots=True)
class Beliefs:
    """What a client was last told of the cluster."""

    partitions: dict[Key, Led] = field(default_factory=dict)

    def learn(self, told: MetadataResponse) -> None:
        """The newest epoch of each partition counts, whoever told of it."""
        for topic in told.topics:
            if topic.error_code or topic.is_internal or topic.name is None:
                continue
            for each in topic.partitions:
                key = (topic.topic_id, each.partition_index)
                known = self.partitions.get(key)
                if known is None or known.leader_epoch <= each.leader_epoch:
                    replicas = tuple(each.replica_nodes)
                    self.partitions[key] = Led(
                        topic.name, key, each.leader_id, each.leader_epoch, replicas
                    )


class Client:
    """One at a time it asks. Its connections are its own."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.random = Random(world.random.randbytes(8))
        self.beliefs = Beliefs()
        self.pending = 0
        """Requests that have no answer yet."""
        self._peers = SocketPeers(world.loop, name)

    @property
    def now_ms(self) -> int:
        return self.world.loop.now_ms

    async def ask(self, node_id: int, request: Message, timeout_ms: int) -> Any:
        """The answer; OSError if there is none."""
        told: asyncio.Future[Any] = self.world.loop.create_future()
        self.pending += 1

        def answered(outcome: Any) -> None:
            self.pending -= 1
            if not told.done():
                told.set_result(self.kept(outcome))

        peer = self._peers.at(host(node_id), CLIENTS_PORT, self.name)
        peer.send(request, timeout_ms, answered)
        outcome = await told
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def kept(self, outcome: Any) -> Any:
        """What is left of an answer when its memory is used again."""
        return outcome

    async def learn(self) -> None:
        """Ask any broker who leads; it may know nothing new, or not answer."""
        broker = self.random.choice(self.world.layout.brokers)
        try:
            request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
            self.beliefs.learn(await self.ask(broker, request, METADATA_TIMEOUT_MS))
        except OSError:
            pass

    async def wait_a_little(self) -> None:
        await asyncio.sleep(self.random.randint(*BACKOFF_MS) / 1000)

    async def led(self, key: Key) -> Led:
        """The partition, once somebody leads it as far as is known."""
        while True:
            known = self.beliefs.partitions.get(key)
            if known is not None and known.leader >= 0:
                return known
            await self.wait_a_little()
            await self.learn()


def name_of(code: int) -> str:
    return ErrorCode.of(code).name
