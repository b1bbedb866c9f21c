"""Consume, process, produce: every input record becomes one output record, in transactions."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.member import Member
from tests.simulation.coordinator.clients.partition_work import Identity, PartitionWork
from tests.simulation.coordinator.clients.producer import Abortable, Fenced, Producer
from tests.simulation.coordinator.events import TopicPartition, TransactionBegan, TransactionEnded

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld

RECORDS_AT_ONCE = 4
ABORT_CHANCE = 0.1


class Processing(PartitionWork):
    """The work of a member that commits its offsets and its output in a transaction (KIP-447)."""

    def __init__(self, member: Member, *, txn_version: int, timeout_ms: int) -> None:
        super().__init__(member)
        self.producer = Producer(
            member, f"tx-{member.name}", txn_version=txn_version, timeout_ms=timeout_ms
        )
        self._loop = _Transactions(member, self.producer, self, lambda: member.identity)

    async def run(self) -> None:
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
    """Processes fixed input partitions, until another starts with its transactional id."""

    def __init__(
        self,
        world: "CoordinatorWorld",
        name: str,
        transactional_id: str,
        group_id: str,
        partitions: list[TopicPartition],
        *,
        txn_version: int,
        timeout_ms: int,
    ) -> None:
        super().__init__(world, name)
        self.identity = Identity(group_id)
        self.partitions = partitions
        self.producer = Producer(
            self, transactional_id, txn_version=txn_version, timeout_ms=timeout_ms
        )
        self.work = PartitionWork(self)  # type: ignore[arg-type] - only the identity is used

    def describe(self) -> str:
        return f"Processor {self.producer.transactional_id} of {self.partitions}"

    async def run(self) -> None:
        try:
            await self.producer.init()
            self.work.assigned(self.partitions)
            await _Transactions(self, self.producer, self.work, lambda: self.identity).run()
        except Fenced as reason:
            self.note(f"is fenced: {reason}")


class _Transactions:
    """Processes the input in one transaction after the other."""

    def __init__(
        self,
        client: Client,
        producer: Producer,
        work: PartitionWork,
        identity: Callable[[], Identity],
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
            positions = self._select_input()
            if positions:
                await self._transact(positions)

    def is_busy_with(self, partitions: Collection[TopicPartition]) -> bool:
        return any(partition in self._busy for partition in partitions)

    def forget_positions(self) -> None:
        self._busy = {}
        for partition in self._work.positions:
            self._work.positions[partition] = None

    def _select_input(self) -> dict[TopicPartition, int]:
        """Returns partitions with input, and the positions up to which to process it."""
        selected = {}
        for partition, position in self._work.positions.items():
            if position is not None and position < (end := self._client.world.input_end(partition)):
                selected[partition] = min(end, position + self._client.between(1, RECORDS_AT_ONCE))
        return selected

    async def _transact(self, positions: dict[TopicPartition, int]) -> None:
        client, world = self._client, self._client.world
        tag = world.next_tag(client)
        starts = {partition: self._work.positions[partition] for partition in positions}
        inputs = tuple(
            (index, offset)
            for (topic, index), end in positions.items()
            for offset in range(starts[topic, index] or 0, end)
        )
        self._busy = positions
        world.events.record(TransactionBegan(tag, inputs))
        try:
            await self._write(tag, inputs)
            if not self._work.positions.keys() >= positions.keys():
                raise Abortable("a partition was revoked")
            await self._producer.send_offsets(self._identity(), positions)
            if client.chance(ABORT_CHANCE):
                raise Abortable("for no reason")
            await self._producer.end(committed=True)
        except Abortable as reason:
            client.note(f"aborts {tag}: {reason}")
            await self._producer.end(committed=False)
            world.events.record(TransactionEnded(tag, committed=False))
            self.forget_positions()
        else:
            world.events.record(TransactionEnded(tag, committed=True))
            self._busy = {}
            for partition, end in positions.items():
                if partition in self._work.positions:
                    self._work.positions[partition] = end

    async def _write(self, tag: str, inputs: tuple[tuple[int, int], ...]) -> None:
        """Produces one record per input record, to random output partitions."""
        batches: dict[TopicPartition, list[str]] = {}
        for index, offset in inputs:
            target = self._client.world.random.choice(self._client.world.output_partitions)
            batches.setdefault(target, []).append(f"{index}:{offset} {tag}")
        for partition, values in batches.items():
            await self._producer.produce(partition, values)
