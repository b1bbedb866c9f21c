"""Read, process, write: each input record becomes one output record, in transactions."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tests.simulation.clients.client import Client
from tests.simulation.clients.member import Member
from tests.simulation.clients.producer import Abortable, Fenced, Producer
from tests.simulation.clients.work import Identity, Work
from tests.simulation.events import TopicPartition, TransactionBegan, TransactionEnded

if TYPE_CHECKING:
    from tests.simulation.world import World

RECORDS_AT_ONCE = 4
ABORTED_FOR_NO_REASON = 0.1


class Processing(Work):
    """What a member does that takes its offsets and its output into one transaction (KIP-447)."""

    def __init__(self, member: Member, *, flow: int, timeout_ms: int) -> None:
        super().__init__(member)
        self.producer = Producer(member, f"tx-{member.name}", flow=flow, timeout_ms=timeout_ms)
        self._loop = _Transactions(member, self.producer, self, lambda: member.identity)

    async def go_on(self) -> None:
        while True:
            try:
                await self.producer.init()
                await self._loop.run()
            except Fenced as reason:
                self.member.note(f"is fenced: {reason}")
                self._loop.forget_positions()

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self.positions.pop(partition, None)
        while self._loop.is_busy_with(partitions):
            await self.member.sleep(20)


class Processor(Client):
    """Has input partitions of its own; whoever starts with its transactional id takes over."""

    def __init__(
        self,
        world: "World",
        name: str,
        transactional_id: str,
        group_id: str,
        partitions: list[TopicPartition],
        *,
        flow: int,
        timeout_ms: int,
    ) -> None:
        super().__init__(world, name)
        self.identity = Identity(group_id)
        self.partitions = partitions
        self.producer = Producer(self, transactional_id, flow=flow, timeout_ms=timeout_ms)
        self.work = Work(self)  # type: ignore[arg-type] - it needs no more than an identity

    def describe(self) -> str:
        return f"Processor {self.producer.transactional_id} of {self.partitions}"

    async def live(self) -> None:
        try:
            await self.producer.init()
            self.work.assigned(self.partitions)
            await _Transactions(self, self.producer, self.work, lambda: self.identity).run()
        except Fenced as reason:
            self.note(f"is fenced: {reason}")


class _Transactions:
    """One transaction after the other over whatever input there is."""

    def __init__(
        self, client: Client, producer: Producer, work: Work, identity: Callable[[], Identity]
    ) -> None:
        self._client = client
        self._producer = producer
        self._work = work
        self._identity = identity
        self._busy: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        client = self._client
        while True:
            await client.sleep(client.between(20, 400))
            await self._work.find_positions()
            chosen = self._choose()
            if chosen:
                await self._transact(chosen)

    def is_busy_with(self, partitions: Collection[TopicPartition]) -> bool:
        return any(each in self._busy for each in partitions)

    def forget_positions(self) -> None:
        self._busy = {}
        for partition in self._work.positions:
            self._work.positions[partition] = None

    def _choose(self) -> dict[TopicPartition, int]:
        """Partitions with input, and the position up to which to process it."""
        chosen = {}
        for partition, position in self._work.positions.items():
            if position is not None and position < (end := self._client.world.input_end(partition)):
                chosen[partition] = min(end, position + self._client.between(1, RECORDS_AT_ONCE))
        return chosen

    async def _transact(self, chosen: dict[TopicPartition, int]) -> None:
        client, world = self._client, self._client.world
        tag = world.next_tag(client)
        starts = {each: self._work.positions[each] for each in chosen}
        inputs = tuple(
            (index, offset)
            for (topic, index), end in chosen.items()
            for offset in range(starts[topic, index] or 0, end)
        )
        self._busy = chosen
        world.events.tell(TransactionBegan(tag, inputs))
        try:
            await self._write(tag, inputs)
            if not self._work.positions.keys() >= chosen.keys():
                raise Abortable("a partition was taken away")
            await self._producer.send_offsets(self._identity(), chosen)
            if client.chance(ABORTED_FOR_NO_REASON):
                raise Abortable("for no reason")
            await self._producer.end(committed=True)
        except Abortable as reason:
            client.note(f"aborts {tag}: {reason}")
            await self._producer.end(committed=False)
            world.events.tell(TransactionEnded(tag, committed=False))
            self.forget_positions()
        else:
            world.events.tell(TransactionEnded(tag, committed=True))
            self._busy = {}
            for partition, end in chosen.items():
                if partition in self._work.positions:
                    self._work.positions[partition] = end

    async def _write(self, tag: str, inputs: tuple[tuple[int, int], ...]) -> None:
        """One output record for each input record, wherever it goes."""
        batches: dict[TopicPartition, list[str]] = {}
        for index, offset in inputs:
            target = self._client.world.random.choice(self._client.world.output_partitions)
            batches.setdefault(target, []).append(f"{index}:{offset} {tag}")
        for partition, values in batches.items():
            await self._producer.produce(partition, values)
