"""Whatever brokers and operators do, in whatever order: what holds for every partition.

A small model of the data goes along: how long each replica's copy is, and how much of it is
committed. It follows the controller's decisions as brokers would.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controller.conftest import CLUSTER_ID, World, broker
from tests.controller.harness import creation, registration

from barnabas.controller import (
    broker_lifecycle,
    leader_balancer,
)
from barnabas.metadata.states import NO_LEADER, PartitionRegistration, RecoveryState
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.metadata_records import ConfigRecord
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest
from barnabas.wire.schema import Message

MIN_ISR = 2
PARTITIONS = 3

Copies = dict[int, int]


class Cluster:
    """Brokers, three partitions of a topic, and the data in them."""

    def __init__(self, broker_count: int, replicas: int) -> None:
        self.world = World(*(broker(number) for number in range(1, broker_count + 1)))
        self.broker_count = broker_count
        self.lives = 0
        self.world.apply(
            ConfigRecord(
                resource_type=4, resource_name="", name="min.insync.replicas", value=str(MIN_ISR)
            )
        )
        self.world.decide(creation("orders", PARTITIONS, replicas))
        self.copies: list[Copies] = [{} for _ in range(PARTITIONS)]
        self.committed = [0] * PARTITIONS
        self.vouched_for: tuple[int, ...] = ()
        """Whom a leader has just said to be in sync with it."""

    def partition(self, number: int) -> PartitionRegistration:
        topic = self.world.image.topics.by_name("orders")
        assert topic is not None
        return topic.partitions[number]

    def decide(self, request: Message) -> Any:
        return self.world.decide(request).response

    # The events; the numbers select their subjects.

    def fence(self, a: int, b: int) -> None:
        lost = self.world.image.brokers[self._broker(a)]
        if not lost.fenced:
            context = self.world.context
            self.world.apply(*broker_lifecycle.fence(lost, self.world.image, context))

    def beat(self, a: int, b: int) -> None:
        self._beat(a)

    def shut_down(self, a: int, b: int) -> None:
        self._beat(a, want_shut_down=True)

    def restart_cleanly(self, a: int, b: int) -> None:
        self._restart(a, self.world.image.brokers[self._broker(a)].epoch)

    def crash(self, a: int, b: int) -> None:
        """The machine goes down, and with it some of what was not yet on its disk."""
        for copies in self.copies:
            if self._broker(a) in copies:
                copies[self._broker(a)] = min(copies[self._broker(a)], b)
        self._restart(a, -1)

    def produce(self, a: int, b: int) -> None:
        """Who is in sync copies it; it is committed if enough are (KIP-966)."""
        number = a % PARTITIONS
        state, copies = self.partition(number), self.copies[number]
        if state.leader == NO_LEADER or not self.world.image.brokers[state.leader].active:
            return
        length = copies.get(state.leader, 0) + 1
        copies.update(dict.fromkeys(state.isr, length))
        if len(state.isr) >= MIN_ISR:
            self.committed[number] = length

    def expand(self, a: int, b: int) -> None:
        """A follower has caught up."""
        number, follower = a % PARTITIONS, self._broker(b)
        state = self.partition(number)
        if state.leader != NO_LEADER and follower in state.replicas:
            copies = self.copies[number]
            copies[follower] = copies.get(state.leader, 0)
            self._alter(number, (*(r for r in state.isr if r != follower), follower))

    def shrink(self, a: int, b: int) -> None:
        """A follower is too slow."""
        number, follower = a % PARTITIONS, self._broker(b)
        state = self.partition(number)
        if state.leader not in (NO_LEADER, follower):
            self._alter(number, tuple(r for r in state.isr if r != follower))

    def move(self, a: int, b: int) -> None:
        first, count = self._broker(b), 1 + b % 3
        target = [self._broker(first - 1 + step) for step in range(count)]
        self._reassign(a % PARTITIONS, list(dict.fromkeys(target)))

    def take_back(self, a: int, b: int) -> None:
        self._reassign(a % PARTITIONS, None)

    def prefer(self, a: int, b: int) -> None:
        request = ElectLeadersRequest(election_type=0, topic_partitions=None)
        self.decide(request)

    def balance(self, a: int, b: int) -> None:
        context = self.world.context
        due = leader_balancer.LeaderBalancer(context.resolver, 0)
        self.world.apply(*due.due_elections(self.world.image, context, context.now_ms))

    def _broker(self, chosen: int) -> int:
        return 1 + chosen % self.broker_count

    def _beat(self, a: int, **wants: Any) -> None:
        known = self.world.image.brokers[self._broker(a)]
        request = BrokerHeartbeatRequest(
            broker_id=known.broker_id,
            broker_epoch=known.epoch,
            current_metadata_offset=self.world.offset,
            **wants,
        )
        self.decide(request)

    def _restart(self, a: int, previous_epoch: int) -> None:
        self.lives += 1
        request = registration(self._broker(a))
        request.cluster_id = CLUSTER_ID
        request.incarnation_id = self.lives.to_bytes(16, "big")
        request.previous_broker_epoch = previous_epoch
        self.world.now_ms += self.world.heartbeats.session_timeout_ms
        self.decide(request)

    def _alter(self, number: int, isr: tuple[int, ...]) -> None:
        self.vouched_for = isr
        state, brokers = self.partition(number), self.world.image.brokers
        topic = self.world.image.topics.by_name("orders")
        assert topic is not None
        asked = RequestPartitionData(
            partition_index=number,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            new_isr_with_epochs=[
                BrokerState(broker_id=item, broker_epoch=brokers[item].epoch) for item in isr
            ],
        )
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=brokers[state.leader].epoch,
            topics=[RequestTopicData(topic_id=topic.topic_id, partitions=[asked])],
        )
        self.decide(request)

    def _reassign(self, number: int, replicas: list[int] | None) -> None:
        asked = ReassignablePartition(partition_index=number, replicas=replicas)
        topics = [ReassignableTopic(name="orders", partitions=[asked])]
        self.decide(AlterPartitionReassignmentsRequest(topics=topics))

    # What must hold

    def follow(self, number: int, before: PartitionRegistration) -> None:
        """A leader elected without being sure of its log ends what was committed where it ends."""
        after, copies = self.partition(number), self.copies[number]
        if after.leader != before.leader and after.recovery_state == RecoveryState.RECOVERING:
            self.committed[number] = min(self.committed[number], copies.get(after.leader, 0))
        for replica in list(copies):
            if replica not in after.replicas:
                del copies[replica]

    def require_lawful(self, number: int, before: PartitionRegistration) -> None:
        after, copies = self.partition(number), self.copies[number]
        brokers = self.world.image.brokers
        # A broker that stopped cleanly keeps what it alone holds while it starts again.
        starting = tuple(item for item in after.isr if not brokers[item].active)
        assert not starting or after.isr == starting
        assert after.leader in after.isr or (after.leader == NO_LEADER and after.isr == starting)
        assert set(after.isr) | set(after.elr) <= set(after.replicas)
        assert not set(after.isr) & set(after.elr)
        assert len(set(after.replicas)) == len(after.replicas) == len(after.directories)
        assert set(after.adding) | set(after.removing) <= set(after.replicas)
        assert after.replicas
        assert after.leader_epoch >= before.leader_epoch
        assert after.partition_epoch > before.partition_epoch or after == before
        assert after.leader_epoch > before.leader_epoch or after.leader == before.leader
        assert len(after.isr) < MIN_ISR or not after.elr
        for trusted in (*after.isr, *after.elr):
            assert copies.get(trusted, 0) >= self.committed[number], trusted
        if (
            after.leader not in (before.leader, NO_LEADER)
            and after.recovery_state == RecoveryState.RECOVERED
        ):
            sure = (*before.isr, *before.elr, *self.vouched_for)
            assert after.leader in sure or before.recovery_state == RecoveryState.RECOVERING


EVENTS = [
    Cluster.fence,
    Cluster.beat,
    Cluster.beat,
    Cluster.shut_down,
    Cluster.restart_cleanly,
    Cluster.crash,
    Cluster.produce,
    Cluster.produce,
    Cluster.expand,
    Cluster.expand,
    Cluster.shrink,
    Cluster.move,
    Cluster.take_back,
    Cluster.prefer,
    Cluster.balance,
]

happenings = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, 11), st.integers(0, 11)),
    min_size=15,
    max_size=60,
)


@settings(max_examples=100)
@given(st.integers(3, 6), st.integers(1, 3), happenings)
def test_the_invariants_of_partitions(
    broker_count: int, replicas: int, happened: list[Any]
) -> None:
    cluster = Cluster(broker_count, replicas)
    for event, a, b in happened:
        before = [cluster.partition(number) for number in range(PARTITIONS)]
        cluster.vouched_for = ()
        event(cluster, a, b)
        for number, state in enumerate(before):
            cluster.follow(number, state)
            cluster.require_lawful(number, state)
