"""A group walked through joins, leaves, crashes, new topics, lost responses, failed writes and new
coordinators, at random by a seed, with a checker for each promise:

- no partition is consumed by two members at once;
- the epochs in the responses to a member never go back;
- what a coordinator loads is what its predecessor had;
- what is counted as members come and go is what there is to count;
- once all is quiet, every partition of every subscribed topic is consumed.
"""

import random
import re
from collections import Counter
from typing import Any

import pytest
from tests.coordinator.consumer.harness import (
    GROUP,
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerHarness,
    Partitions,
    assigned,
    report,
)

from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.coordinator.groups.consumer.regexes import MIN_INTERVAL_MS
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatResponse

STEPS = 250
QUIET_MS = 3_000
"""How often members send heartbeats when nothing happens."""

TOPICS = ("ta", "tb", "ua")
SUBSCRIPTIONS: tuple[dict[str, Any], ...] = (
    {"subscribed_topic_names": ["ta"], "subscribed_topic_regex": ""},
    {"subscribed_topic_names": ["ta", "tb"], "subscribed_topic_regex": ""},
    {"subscribed_topic_names": ["tb", "ua"], "subscribed_topic_regex": ""},
    {"subscribed_topic_names": [], "subscribed_topic_regex": "t.*"},
    {"subscribed_topic_names": ["ta"], "subscribed_topic_regex": ".*a"},
)
REJOIN_ERRORS = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Client:
    """A consumer as clients are: it revokes before it adopts, and takes its time for both."""

    def __init__(self, member_id: str, instance: str | None, subscription: dict[str, Any]) -> None:
        self.member_id = member_id
        self.instance = instance
        self.subscription = subscription
        self.epoch = 0
        self.consumes: Partitions = set()
        self.pending_assignment: Partitions | None = None
        """What it is to have, if that is not what it has."""
        self.says_all = True
        self.unanswered: PendingResponse[ConsumerGroupHeartbeatResponse] | None = None

    def wants(self, topic: str) -> bool:
        pattern = self.subscription["subscribed_topic_regex"]
        by_name = topic in self.subscription["subscribed_topic_names"]
        return by_name or (pattern != "" and re.fullmatch(pattern, topic) is not None)

    def heartbeat(self, harness: ConsumerHarness) -> None:
        fields: dict[str, Any] = {"instance_id": self.instance}
        if self.epoch == 0:
            self.abandon()
        if self.epoch == 0 or self.says_all:
            fields |= {"rebalance_timeout_ms": REBALANCE_MS, **self.subscription}
        fields["topic_partitions"] = report(self.consumes)
        self.unanswered = harness.send(self.member_id, self.epoch, **fields)

    def hear(self) -> None:
        """Handles the response. Without one it does not adopt an earlier assignment: what it
        reported may have been taken for a release, by Kafka's coordinator as by ours."""
        pending, self.unanswered = self.unanswered, None
        error = pending.error if pending is not None else None
        if pending is None or not pending.is_done or error is not None:
            assert error is None or isinstance(error, KafkaError), error
            self.says_all, self.pending_assignment = True, None
            if error is not None and error.code in REJOIN_ERRORS:
                self.epoch = 0
                self.abandon()
            return
        response = pending.result()
        assert response.member_epoch >= self.epoch, "an epoch went back"
        self.epoch = response.member_epoch
        self.says_all = False
        if response.assignment is not None:
            self.pending_assignment = assigned(response)

    def revoke(self) -> None:
        if self.pending_assignment is not None:
            self.consumes &= self.pending_assignment

    def adopt(self) -> None:
        if self.pending_assignment is not None and self.consumes <= self.pending_assignment:
            self.consumes, self.pending_assignment = self.pending_assignment, None

    def abandon(self) -> None:
        self.consumes, self.pending_assignment = set(), None


class Walk:
    """The seed decides on everything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.harness = ConsumerHarness()
        self.clients: list[Client] = []
        self.named = 0
        self.partitions = dict.fromkeys(TOPICS, 2)
        for name in TOPICS[:2]:
            self.harness.topic(name, 2)
        for _ in range(3):
            self.join()

    def run(self) -> None:
        moves = {
            self.heartbeat: 20, self.revoke_or_adopt: 10, self.pass_time: 6, self.join: 2,
            self.crash: 0.5, self.leave: 0.5, self.resubscribe: 1, self.change_topics: 1,
            self.refuse_writes: 0.5, self.hold_back: 0.5, self.fail_over: 0.5,
            self.restart_static: 0.5,
        }  # fmt: skip
        for _ in range(STEPS):
            if self.random.random() < 0.2:
                self.recover()
            move = self.random.choices(list(moves), list(moves.values()))[0]
            move()
            self.check()
        self.settle()
        self.change_topics()
        self.settle()

    # Moves

    def heartbeat(self) -> None:
        client = self.somebody()
        if client is not None:
            client.heartbeat(self.harness)
            if self.random.random() < 0.9:  # else the response is lost
                client.hear()
            else:
                client.unanswered = None
                client.hear()

    def revoke_or_adopt(self) -> None:
        client = self.somebody()
        if client is not None:
            self.random.choice([client.revoke, client.adopt])()

    def pass_time(self) -> None:
        delays_ms = (
            0,
            10,
            INTERVAL_MS,
            INTERVAL_MS,
            2_000,
            3_000,
            MIN_INTERVAL_MS,
            SESSION_MS // 2,
        )
        self.harness.advance(self.random.choice(delays_ms))

    def join(self) -> None:
        if len(self.clients) >= 6:
            return
        self.named += 1
        instance = f"i{self.named}" if self.random.random() < 0.3 else None
        subscription = self.random.choice(SUBSCRIPTIONS)
        self.clients.append(Client(f"m{self.named}", instance, subscription))

    def crash(self) -> None:
        client = self.somebody()
        if client is not None:
            self.clients.remove(client)

    def leave(self) -> None:
        client = self.somebody()
        if client is not None:
            self.clients.remove(client)
            self.harness.send(client.member_id, -1, instance_id=client.instance)

    def restart_static(self) -> None:
        """It goes for a while, and comes back under another id."""
        static = [each for each in self.clients if each.instance is not None]
        if static:
            client = self.random.choice(static)
            self.clients.remove(client)
            self.harness.send(client.member_id, -2, instance_id=client.instance)
            self.named += 1
            successor = Client(f"m{self.named}", client.instance, client.subscription)
            self.clients.append(successor)

    def resubscribe(self) -> None:
        client = self.somebody()
        if client is not None:
            client.subscription = self.random.choice(SUBSCRIPTIONS)
            client.says_all = True

    def change_topics(self) -> None:
        name = self.random.choice(TOPICS)
        topic = self.harness.environment.image.topics.by_name(name)
        if topic is not None and self.random.random() < 0.3:
            self.harness.environment.image.offset += 1
            self.harness.environment.delete_topic(name)
            for client in self.clients:  # its data is deleted, and no member consumes it
                gone = {each for each in client.consumes if each[0] == topic.topic_id}
                client.consumes -= gone
        else:
            self.partitions[name] += 1
            self.harness.topic(name, self.partitions[name])

    def refuse_writes(self) -> None:
        self.harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")

    def hold_back(self) -> None:
        """Nothing is committed, so no member gets a response."""
        self.harness.environment.log.is_committing = False

    def recover(self) -> None:
        log = self.harness.environment.log
        log.append_error, log.is_committing = None, True
        log.commit()

    def fail_over(self) -> None:
        """Another leads; what was not committed is lost to it, sometimes."""
        log = self.harness.environment.log
        if self.random.random() < 0.5:
            self.recover()
            before = self.group()
            self.harness.lead()
            after = self.group()
            assert (before is None) == (after is None)
            if before is not None and after is not None:
                assert contents(before) == contents(after)
        else:
            log.truncate_to(log.high_watermark)
            log.append_error, log.is_committing = None, True
            self.harness.lead()

    def somebody(self) -> Client | None:
        return self.random.choice(self.clients) if self.clients else None

    def group(self) -> ConsumerGroup | None:
        group = self.harness.groups.by_id.get(GROUP)
        assert group is None or isinstance(group, ConsumerGroup)
        return group

    # Checks

    def check(self) -> None:
        group = self.group()
        if group is None:
            return
        check_counts(group, self.harness)
        consumed = Counter(
            partition
            for client in self.clients
            if client.member_id in group.members  # a fenced member does not know it yet
            for partition in client.consumes
        )
        assert all(count == 1 for count in consumed.values()), "a partition has two consumers"

    def settle(self) -> None:
        """Let all be quiet for longer than any session, and see that all is consumed."""
        self.recover()
        for _ in range(2 * SESSION_MS // QUIET_MS):
            for client in self.clients:
                client.heartbeat(self.harness)
                client.hear()
                client.revoke()
                client.adopt()
                self.check()
            self.harness.advance(QUIET_MS)
        group = self.group()
        assert group is not None
        assert group.members.keys() == {client.member_id for client in self.clients}
        assert group.state_name == ("Stable" if self.clients else "Empty")
        consumed = {partition for client in self.clients for partition in client.consumes}
        assert consumed == {
            (topic.topic_id, index)
            for topic in self.harness.environment.image.topics
            if any(client.wants(topic.name) for client in self.clients)
            for index in topic.partitions
        }


def contents(group: ConsumerGroup) -> dict[str, Any]:
    """All that is in the log of a group, and all that is counted from it."""
    return {
        name: getattr(group, name)
        for name in ConsumerGroup.__slots__
        if name not in ("_subscriptions", "has_new_topics")
    }


def check_counts(group: ConsumerGroup, harness: ConsumerHarness) -> None:
    """What is counted on the way is what there is to count now."""
    members = group.members.values()
    owners = [
        ((topic_id, partition), member.member_id)
        for member in members
        for owned in (member.assigned, member.pending_revocation)
        for topic_id, partitions in owned.items()
        for partition in partitions
    ]
    assert len(dict(owners)) == len(owners), "a partition has two owners"
    assert dict(owners) == {
        (topic_id, partition): member_id
        for topic_id, partitions in group.owners.items()
        for partition, member_id in partitions.items()
    }
    topics = Counter(name for member in members for name in member.subscribed_topic_names)
    topics.update(name for each in group.resolved_regexes.values() for name in each.topics)
    assert group.subscribed_topics == topics
    assert all(group.group_id in harness.groups.subscriptions.of(name) for name in topics)
    patterns = [each.subscribed_topic_regex for each in members if each.subscribed_topic_regex]
    assert group.regexes == Counter(patterns)
    assert group.resolved_regexes.keys() <= group.regexes.keys()
    static = {each.instance_id: each.member_id for each in members if each.instance_id is not None}
    assert group.static_members == static
    assert group.targets.keys() <= group.members.keys()
    stable = all(each.is_reconciled_to(group.assignment_epoch) for each in members)
    if members and group.epoch == group.assignment_epoch:
        assert group.state_name == ("Stable" if stable else "Reconciling")
    for each in members:
        assert bool(each.pending_revocation) <= (each.state is MemberState.UNREVOKED_PARTITIONS)


@pytest.mark.parametrize("seed", range(40))
def test_a_consumer_group_keeps_its_invariants_in_a_random_walk(seed: int) -> None:
    Walk(seed).run()
