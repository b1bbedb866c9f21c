"""The clients of a run, in groups that share a group id or a transactional id."""

from collections.abc import Callable
from typing import Any

from tests.simulation.coordinator.clients.classic import ClassicMember
from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.committer import Committer
from tests.simulation.coordinator.clients.consumer import ConsumerMember
from tests.simulation.coordinator.clients.member import Member
from tests.simulation.coordinator.clients.partition_work import Consuming, PartitionWork
from tests.simulation.coordinator.clients.processing import Processing, Processor
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.world import INPUT, INPUT_PARTITIONS, TOPICS, CoordinatorWorld

Build = Callable[..., Member]

EAGER, COOPERATIVE, CONSUMER = "eager", "cooperative", "consumer"

TRANSACTION_TIMEOUT_MS = 8_000


class ClientGroup:
    """Clients that start, pause, crash and stop."""

    def __init__(self, world: CoordinatorWorld, name: str) -> None:
        self.world = world
        self.name = name
        self.clients: list[Client] = []
        self._count = 0

    @property
    def alive(self) -> list[Client]:
        self.clients = [client for client in self.clients if client.is_alive]
        return self.clients

    def add_client(self) -> None:
        """Starts a client, unless there are enough."""
        raise NotImplementedError

    def ensure_running(self) -> None:
        """Starts the clients that must run when there are no faults."""
        if not self.alive:
            self.add_client()

    def change(self) -> None:
        """Starts, crashes or pauses a client."""
        random = self.world.random
        alive = self.alive
        if not alive or random.random() < 0.35:
            self.add_client()
            return
        client = random.choice(alive)
        if random.random() < 0.5:
            client.crash()
        else:
            client.pause(random.randint(100, 12_000))

    def add(self, client: Client) -> None:
        self.clients.append(client)
        client.start()

    def next_name(self) -> str:
        self._count += 1
        return f"{self.name}{self._count}"


class MemberClients(ClientGroup):
    """The members of a consumer group, which may be static, and of one or both protocols."""

    def __init__(
        self,
        world: CoordinatorWorld,
        name: str,
        protocols: list[str],
        topics: list[str],
        size: int,
        work: Callable[[Member], PartitionWork],
        static: float,
    ) -> None:
        super().__init__(world, name)
        self.group_id = f"group-{name}"
        self.topics = topics
        self._protocols = protocols
        self._size = size
        self._work = work
        self._static = static
        self._instances = 0

    @property
    def may_be_leaderless(self) -> bool:
        """Whether it can become a classic group in which no member knows that it is the leader.

        Then no member assigns new partitions, in Kafka as well.
        """
        return len(self._protocols) > 1 and self._static > 0

    @property
    def partitions(self) -> list[TopicPartition]:
        return self.world.partitions_of(self.topics)

    def add_client(self) -> None:
        if len(self.alive) < self._size:
            instance_id = None
            if self.world.random.random() < self._static:
                used = {member.instance_id for member in self.alive if isinstance(member, Member)}
                names = [f"{self.name}-static{number}" for number in range(self._size)]
                instance_id = next(name for name in names if name not in used)
            self.add(self._build(instance_id))

    def change(self) -> None:
        random = self.world.random
        members = [client for client in self.alive if isinstance(client, Member)]
        if members and random.random() < 0.3:
            member = random.choice(members)
            if member.instance_id is not None and random.random() < 0.5:
                self._duplicate(member)
            else:
                member.leave()
            return
        super().change()

    def _duplicate(self, member: Member) -> None:
        """Starts another member with the same instance id while the first still runs."""
        self.add(self._build(member.instance_id))

    def _build(self, instance_id: str | None) -> Member:
        protocol = self.world.random.choice(self._protocols)
        common: list[Any] = [
            self.world, self.next_name(), self.group_id, self.topics, self._work, instance_id,
        ]  # fmt: skip
        if protocol == CONSUMER:
            return ConsumerMember(*common)
        return ClassicMember(*common, is_cooperative=protocol == COOPERATIVE)


class ProcessorClients(ClientGroup):
    """Instances of one processor. Only the latest can commit a transaction."""

    def __init__(
        self,
        world: CoordinatorWorld,
        name: str,
        group_id: str,
        partitions: list[TopicPartition],
        txn_version: int,
    ) -> None:
        super().__init__(world, name)
        self._group_id = group_id
        self._partitions = partitions
        self._txn_version = txn_version

    def change(self) -> None:
        """Often starts another instance while the first is only paused: a zombie."""
        random = self.world.random
        if self.alive and random.random() < 0.4:
            random.choice(self.alive).pause(random.randint(200, 6_000))
            self.add_client()
        else:
            super().change()

    def add_client(self) -> None:
        if len(self.alive) < 2:
            self.add(
                Processor(
                    self.world,
                    self.next_name(),
                    f"tx-{self.name}",
                    self._group_id,
                    self._partitions,
                    txn_version=self._txn_version,
                    timeout_ms=TRANSACTION_TIMEOUT_MS,
                )
            )


class CommitterClients(ClientGroup):
    """A client that commits offsets, without group membership."""

    def __init__(self, world: CoordinatorWorld, name: str) -> None:
        super().__init__(world, name)
        self.group_id = f"group-{name}"
        self.partitions = world.partitions_of(sorted(TOPICS))

    def add_client(self) -> None:
        if not self.alive:
            self.add(Committer(self.world, self.next_name(), self.group_id, self.partitions))


def draw_group(world: CoordinatorWorld, name: str) -> MemberClients:
    """Returns a group that consumes."""
    random = world.random
    protocols = random.choice(
        [[EAGER], [COOPERATIVE], [CONSUMER], [CONSUMER], [EAGER, CONSUMER], [COOPERATIVE, CONSUMER]]
    )
    topics = random.choice([["red"], ["blue"], ["blue", "red"]])
    static = random.choice([0.0, 0.0, 0.5, 1.0])
    return MemberClients(world, name, protocols, topics, random.randint(2, 5), Consuming, static)


def draw_processors(world: CoordinatorWorld) -> list[ClientGroup]:
    """Returns the clients that process input into output, one by one or as a group."""
    random = world.random
    txn_versions = range(1, 1 + world.transaction_version)
    txn_version = random.choice(txn_versions)
    if random.random() < 0.5:
        inputs = [(INPUT, index) for index in range(INPUT_PARTITIONS)]
        return [
            ProcessorClients(world, "p", PROCESSORS, inputs[:2], txn_version),
            ProcessorClients(world, "q", PROCESSORS, inputs[2:], random.choice(txn_versions)),
        ]
    protocols = random.choice([[EAGER], [COOPERATIVE], [CONSUMER], [COOPERATIVE, CONSUMER]])

    def work(member: Member) -> PartitionWork:
        return Processing(member, txn_version=txn_version, timeout_ms=TRANSACTION_TIMEOUT_MS)

    clients = MemberClients(world, "t", protocols, [INPUT], random.randint(1, 3), work, static=0.0)
    clients.group_id = PROCESSORS
    return [clients]


PROCESSORS = "group-processors"
