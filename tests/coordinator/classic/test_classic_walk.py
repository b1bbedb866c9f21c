"""Clients that mostly behave, a log that fails, coordinators that come and go.

Each step is drawn from a seed. After every one the group is whole; every assignment in a response
is the one that its generation's leader gave; in the end nobody waits.
"""

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from tests.coordinator.classic.harness import GROUP, ClassicHarness
from tests.coordinator.environment import code_of
from tests.log_records import barnabas_log_records

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroupResponse,
)

CLIENTS = 5
GROUP_SIZE = 4
INSTANCES = (None, None, "a", "b")
PROTOCOLS = (("range",), ("range", "sticky"), ("sticky", "range"))
LONG_MS = 3_600_000


@dataclass(slots=True)
class Consumer:
    """What a client remembers of its membership."""

    instance: str | None
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    is_leader: bool = False
    is_synced: bool = False
    is_waiting: bool = False

    def forget(self) -> None:
        self.member_id, self.generation, self.is_synced = "", -1, False


class Walk:
    """A harness, its clients, and the responses they got."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.harness = ClassicHarness(
            group_max_size=GROUP_SIZE, group_initial_rebalance_delay_ms=50
        )
        self.clients = [self.client() for _ in range(CLIENTS)]
        self.responses: list[PendingResponse[Any]] = []
        self.assigned: dict[int, bytes] = {}
        """The assignment that members got, by generation."""

    def step(self) -> None:
        behave = [self.behave] * 40
        others = [self.blunder, self.replace, *[self.pass_time] * 4]
        failures = [self.hold_log, self.refuse_log, self.fail_over]
        self.random.choice(behave + others + failures)()
        check_whole(self.harness)

    # Clients

    def client(self) -> Consumer:
        return Consumer(self.random.choice(INSTANCES))

    def behave(self) -> None:
        """A client does what is next for it."""
        client = self.random.choice(self.clients)
        if client.is_waiting:
            return
        if client.generation < 0:
            self.join(client)
        elif not client.is_synced:
            self.sync(client)
        else:
            self.beat(client)

    def blunder(self) -> None:
        """A client does what comes to its mind."""
        client = self.random.choice(self.clients)
        self.random.choice((self.join, self.sync, self.beat, self.leave, self.forget))(client)

    def replace(self) -> None:
        """A client dies without a word; another is started."""
        self.clients[self.random.randrange(CLIENTS)] = self.client()

    def forget(self, client: Consumer) -> None:
        client.forget()

    def join(self, client: Consumer) -> None:
        version = self.random.choice((3, 5, 9)) if client.instance is None else 9
        joining = self.harness.join(
            client.member_id,
            instance=client.instance,
            protocols=self.random.choice(PROTOCOLS),
            topics=self.random.choice((("t",), ("t",), ("u",))),
            version=version,
        )
        client.is_waiting = True
        self.responses.append(joining)
        joining.when_done(lambda response: self.joined(client, response))

    def joined(self, client: Consumer, response: PendingResponse[JoinGroupResponse]) -> None:
        client.is_waiting = client.is_synced = False
        code = code_of(response)
        if code is ErrorCode.NONE:
            result = response.result()
            client.member_id, client.generation = result.member_id, result.generation_id
            client.protocol, client.is_leader = result.protocol_name, bool(result.members)
            assert client.is_leader == (result.leader == result.member_id)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id, client.generation = response.result().member_id, -1
        else:
            client.forget()

    def sync(self, client: Consumer) -> None:
        tag = f"{client.generation}:{self.random.getrandbits(32)}:".encode()
        everybody = {each.member_id: tag + each.member_id.encode() for each in self.clients}
        syncing = self.harness.sync(
            client.member_id,
            client.generation,
            everybody if client.is_leader else None,
            instance=client.instance,
            protocol=client.protocol or "range",
        )
        client.is_waiting = True
        self.responses.append(syncing)
        generation = client.generation
        syncing.when_done(lambda response: self.synced(client, generation, response))

    def synced(
        self, client: Consumer, generation: int, response: PendingResponse[SyncGroupResponse]
    ) -> None:
        client.is_waiting = False
        self.handle_error(client, code_of(response))
        if code_of(response) is not ErrorCode.NONE:
            return
        client.is_synced = True
        if response.result().assignment:
            result, tag, _ = response.result().assignment.split(b":", 2)
            assert int(result) == generation
            assert self.assigned.setdefault(generation, tag) == tag

    def beat(self, client: Consumer) -> None:
        def handle_error(response: PendingResponse[HeartbeatResponse]) -> None:
            self.handle_error(client, code_of(response))

        self.harness.send_heartbeat(client.member_id, client.generation, client.instance).when_done(
            handle_error
        )

    def handle_error(self, client: Consumer, code: ErrorCode) -> None:
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            client.generation = -1
        elif code is not ErrorCode.NONE:
            client.forget()

    def leave(self, client: Consumer) -> None:
        self.harness.request_leave((self.random.choice((client.member_id, "")), client.instance))

    # The environment

    def pass_time(self) -> None:
        self.harness.advance(self.random.choice((10, 50, 100, 1_000, 3_000, 10_000, 30_000)))

    def hold_log(self) -> None:
        log = self.harness.environment.log
        log.is_committing = not log.is_committing
        if log.is_committing:
            log.commit()

    def refuse_log(self) -> None:
        log = self.harness.environment.log
        log.append_error = None if log.append_error else KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    def fail_over(self) -> None:
        """What was not committed is lost."""
        log = self.harness.environment.log
        log.lose_leadership()
        log.truncate_to(log.high_watermark)
        self.harness.lead()

    def end(self) -> None:
        """The log works, and all clients are silent."""
        log = self.harness.environment.log
        log.append_error, log.is_committing = None, True
        log.commit()
        self.harness.advance(LONG_MS)


def check_whole(harness: ClassicHarness) -> None:
    group = harness.groups.by_id.get(GROUP)
    if not isinstance(group, ClassicGroup):
        return
    members = group.members.values()
    joining = [each for each in members if each.pending_join is not None]
    syncing = [each for each in members if each.pending_sync is not None]
    assert group.pending_join_count == len(joining)
    assert {each.member_id for each in members} == set(group.members)
    assert group.static_members == {
        each.instance_id: each.member_id for each in members if each.instance_id is not None
    }
    assert len(joining) <= GROUP_SIZE
    assert group.pending.isdisjoint(group.members)
    assert group.unsynced <= set(group.members)
    assert group.leader in group.members or (not group.members and group.leader is None)
    assert not members or all(group.elect_protocol() in each.protocols for each in members)
    awaits_joins = ("classic joins", GROUP) in harness.groups.timers
    awaits_syncs = ("classic syncs", GROUP) in harness.groups.timers
    assert awaits_joins is (group.state is ClassicState.PREPARING_REBALANCE)
    assert awaits_syncs is bool(group.unsynced)
    match group.state:
        case ClassicState.EMPTY:
            assert not group.members
            assert group.protocol is None
        case ClassicState.PREPARING_REBALANCE:
            assert not syncing
            assert not group.unsynced
        case ClassicState.COMPLETING_REBALANCE:
            assert not joining
            assert {each.member_id for each in syncing}.isdisjoint(group.unsynced)
        case ClassicState.STABLE:
            assert all(group.protocol in each.protocols for each in members)
            assert all(each.is_static for each in joining)
            assert not syncing


@pytest.mark.parametrize("seed", range(80))
def test_a_random_walk_leaves_a_consistent_group_without_pending_responses(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    walk = Walk(seed)
    for _ in range(300):
        walk.step()
    walk.end()
    check_whole(walk.harness)
    assert all(response.is_done for response in walk.responses)
    assert walk.harness.groups.by_id.get(GROUP) is None or walk.harness.group.is_empty
    assert walk.harness.alarm_count == 0
    assert not barnabas_log_records(caplog), "a timer's decision failed"
