"""Who takes part in a run: crowds of clients that share a group or a transactional id."""

from collections.abc import Callable
from typing import Any

from tests.simulation.clients.classic import ClassicMember
from tests.simulation.clients.client import Client
from tests.simulation.clients.committer import Committer
from tests.simulation.clients.consumer import ConsumerMember
from tests.simulation.clients.member import Member
from tests.simulation.clients.processing import Processing, Processor
from tests.simulation.clients.work import Reading, Work
from tests.simulation.events import TopicPartition
from tests.simulation.world import INPUT, INPUT_PARTITIONS, TOPICS, World

Build = Callable[..., Member]

EAGER, COOPERATIVE, CONSUMER = "eager", "cooperative", "consumer"

TRANSACTION_TIMEOUT_MS = 8_000


class Crowd:
    """Clients that come and go."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.clients: list[Client] = []
        self._count = 0

    @property
    def alive(self) -> list[Client]:
        self.clients = [each for each in self.clients if each.is_alive]
        return self.clients

    def come(self) -> None:
        """One more, if there is room."""
        raise NotImplementedError

    def settle(self) -> None:
        """From now on nobody comes or goes: whoever is needed is there."""
        if not self.alive:
            self.come()

    def change(self) -> None:
        """Something happens to somebody."""
        random = self.world.random
        alive = self.alive
        if not alive or random.random() < 0.35:
            self.come()
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


class GroupCrowd(Crowd):
    """A group; some of its members may be static, and speak one protocol or the other."""

    def __init__(
        self, world: World, name: str, protocols: list[str], topics: list[str], size: int,
        work: Callable[[Member], Work], static: float,
    ) -> None:  # fmt: skip
        super().__init__(world, name)
        self.group_id = f"group-{name}"
        self.topics = topics
        self._protocols = protocols
        self._size = size
        self._work = work
        self._static = static
        self._instances = 0

    @property
    def may_be_unled(self) -> bool:
        """Whether it can become a classic group none of whose members was told that it leads:
        then, in Kafka as well, nobody looks after new partitions."""
        return len(self._protocols) > 1 and self._static > 0

    @property
    def partitions(self) -> list[TopicPartition]:
        return self.world.partitions_of(self.topics)

    def come(self) -> None:
        if len(self.alive) < self._size:
            instance_id = None
            if self.world.random.random() < self._static:
                taken = {each.instance_id for each in self.alive if isinstance(each, Member)}
                names = [f"{self.name}-static{number}" for number in range(self._size)]
                instance_id = next(each for each in names if each not in taken)
            self.add(self._build(instance_id))

    def change(self) -> None:
        random = self.world.random
        members = [each for each in self.alive if isinstance(each, Member)]
        if members and random.random() < 0.3:
            member = random.choice(members)
            if member.instance_id is not None and random.random() < 0.5:
                self._double(member)
            else:
                member.leave()
            return
        super().change()

    def _double(self, member: Member) -> None:
        """Another with the same instance id starts while the first still runs."""
        self.add(self._build(member.instance_id))

    def _build(self, instance_id: str | None) -> Member:
        protocol = self.world.random.choice(self._protocols)
        common: list[Any] = [
            self.world, self.next_name(), self.group_id, self.topics, self._work, instance_id,
        ]  # fmt: skip
        if protocol == CONSUMER:
            return ConsumerMember(*common)
        return ClassicMember(*common, is_cooperative=protocol == COOPERATIVE)


class ProcessorCrowd(Crowd):
    """Instances of one processor. Only the latest may get anything done."""

    def __init__(
        self, world: World, name: str, group_id: str, partitions: list[TopicPartition], flow: int
    ) -> None:
        super().__init__(world, name)
        self._group_id = group_id
        self._partitions = partitions
        self._flow = flow

    def change(self) -> None:
        """Often another takes over from one that only stands still: a zombie."""
        random = self.world.random
        if self.alive and random.random() < 0.4:
            random.choice(self.alive).pause(random.randint(200, 6_000))
            self.come()
        else:
            super().change()

    def come(self) -> None:
        if len(self.alive) < 2:
            self.add(
                Processor(
                    self.world,
                    self.next_name(),
                    f"tx-{self.name}",
                    self._group_id,
                    self._partitions,
                    flow=self._flow,
                    timeout_ms=TRANSACTION_TIMEOUT_MS,
                )
            )


class CommitterCrowd(Crowd):
    """One that commits, over and over again."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.group_id = f"group-{name}"
        self.partitions = world.partitions_of(sorted(TOPICS))

    def come(self) -> None:
        if not self.alive:
            self.add(Committer(self.world, self.next_name(), self.group_id, self.partitions))


def draw_group(world: World, name: str) -> GroupCrowd:
    """A group that reads."""
    random = world.random
    protocols = random.choice(
        [[EAGER], [COOPERATIVE], [CONSUMER], [CONSUMER], [EAGER, CONSUMER], [COOPERATIVE, CONSUMER]]
    )
    topics = random.choice([["red"], ["blue"], ["blue", "red"]])
    static = random.choice([0.0, 0.0, 0.5, 1.0])
    return GroupCrowd(world, name, protocols, topics, random.randint(2, 5), Reading, static)


def draw_processors(world: World) -> list[Crowd]:
    """Those who turn input into output: each by itself, or a group of them."""
    random = world.random
    flows = range(1, 1 + world.transaction_version)
    flow = random.choice(flows)
    if random.random() < 0.5:
        inputs = [(INPUT, index) for index in range(INPUT_PARTITIONS)]
        return [
            ProcessorCrowd(world, "p", PROCESSORS, inputs[:2], flow),
            ProcessorCrowd(world, "q", PROCESSORS, inputs[2:], random.choice(flows)),
        ]
    protocols = random.choice([[EAGER], [COOPERATIVE], [CONSUMER], [COOPERATIVE, CONSUMER]])

    def work(member: Member) -> Work:
        return Processing(member, flow=flow, timeout_ms=TRANSACTION_TIMEOUT_MS)

    crowd = GroupCrowd(world, "t", protocols, [INPUT], random.randint(1, 3), work, static=0.0)
    crowd.group_id = PROCESSORS
    return [crowd]


PROCESSORS = "group-processors"
