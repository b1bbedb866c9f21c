"""Groups that share the partitions of topics while members join and leave.

A scenario with `assignor` runs for each assignor of the library; a scenario with `protocol` runs
once for each kind of rebalance: eager, cooperative, and KIP-848.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from tests.conformance.clients.client import BrokerError, ErrorCode, SentRecord
from tests.conformance.clients.group_client import (
    REBALANCING,
    Committed,
    ConsumerOptions,
    GroupClient,
    GroupMembers,
    Member,
    PartitionKey,
    Protocol,
)

PARTITIONS = 4
NUMBERS = count()


class SharingScenarios:
    def test_every_record_is_consumed_while_members_join_and_leave(
        self, client: GroupClient, topic: str, assignor: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(assignor))
        ) as group_members:
            group_members.wait_until_shared(topic_partitions)
            for newcomers in 1, 2:
                group_members.consume_all(produce_to_all(client, topic, 10 * newcomers))
                group_members.members.append(client.join(topic, [topic], ConsumerOptions(assignor)))
                group_members.wait_until_shared(topic_partitions)
            group_members.consume_all(produce_to_all(client, topic, 30))
            group_members.members.pop(0).leave()  # the leader in the classic protocol
            group_members.wait_until_shared(topic_partitions)
            group_members.consume_all(produce_to_all(client, topic, 40))
            group_members.commit(topic_partitions, 100)

    def test_the_next_member_continues_at_the_committed_offsets(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(protocol))
        ) as group_members:
            group_members.consume_all(produce_to_all(client, topic, 10))
            group_members.commit(topic_partitions, 10)
        values = produce_to_all(client, topic, 5)
        with joined_members(
            *(client.join(topic, [topic], ConsumerOptions(protocol)) for _ in range(2))
        ) as group_members:
            group_members.consume_all(values)
        assert {
            (consumed.topic_partition, consumed.offset) for _, consumed in group_members.consumed
        } == {
            (topic_partition, offset)
            for topic_partition in topic_partitions
            for offset in range(10, 15)
        }

    def test_positions_are_committed_automatically(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        values = produce_to_all(client, topic, 10)
        options = ConsumerOptions(protocol, auto_commit=True)
        with joined_members(client.join(topic, [topic], options)) as group_members:
            group_members.consume_all(values)
            committed = dict.fromkeys(topic_partitions, Committed(10))
            group_members.poll_until(
                lambda: client.group_offsets(topic) == committed, "all positions are committed"
            )

    def test_new_partitions_are_assigned(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        with joined_members(
            *(client.join(topic, [topic], ConsumerOptions(protocol)) for _ in range(2))
        ) as group_members:
            group_members.wait_until_shared(topic_partitions)
            client.create_partitions(topic, PARTITIONS + 2)
            group_members.wait_until_shared(
                topic_partitions
                | {
                    PartitionKey(topic, PARTITIONS),
                    PartitionKey(topic, PARTITIONS + 1),
                }
            )

    def test_members_can_subscribe_to_different_topics(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first, second = (
            create_partitioned_topic(client, f"{topic}-1"),
            create_partitioned_topic(client, f"{topic}-2"),
        )
        one = client.join(topic, [f"{topic}-1"], ConsumerOptions(protocol))
        both = client.join(topic, [f"{topic}-1", f"{topic}-2"], ConsumerOptions(protocol))
        with joined_members(one, both) as group_members:
            group_members.poll_until(
                lambda: (
                    one.assignment() <= first
                    and second <= both.assignment()
                    and not one.assignment() & both.assignment()
                    and one.assignment() | both.assignment() == first | second
                ),
                "every member has partitions of its topics",
            )


class PatternScenarios:
    """Topics by a pattern that the client resolves."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE])
    def test_a_pattern_matches_topics_that_are_created_later(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first = create_partitioned_topic(client, f"{topic}-1")
        create_partitioned_topic(client, f"other-{topic}-1")
        with joined_members(
            client.join(topic, [f"^{topic}-[0-9]"], ConsumerOptions(protocol))
        ) as group_members:
            group_members.wait_until_shared(first)
            second = create_partitioned_topic(client, f"{topic}-2")
            group_members.wait_until_shared(first | second)
            group_members.consume_all(produce_to_all(client, f"{topic}-2", 5))
            client.delete_topic(f"{topic}-1")
            group_members.wait_until_shared(second)
            group_members.consume_all(produce_to_all(client, f"{topic}-2", 5))


class ServerPatternScenarios:
    """Topics by a pattern that the broker resolves, in KIP-848.

    It checks for new topics every ten seconds, which is too slow for a test.
    """

    @pytest.mark.parametrize("protocol", [Protocol.CONSUMER])
    def test_the_broker_resolves_a_pattern(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        first, second = (
            create_partitioned_topic(client, f"{topic}-1"),
            create_partitioned_topic(client, f"{topic}-2"),
        )
        create_partitioned_topic(client, f"other-{topic}-1")
        pattern = f"^{topic}-[0-9]"
        with joined_members(
            *(client.join(topic, [pattern], ConsumerOptions(protocol)) for _ in range(2))
        ) as group_members:
            group_members.wait_until_shared(first | second)
            group_members.consume_all(produce_to_all(client, f"{topic}-2", 5))
            client.delete_topic(f"{topic}-1")
            group_members.wait_until_shared(second)


class StaticMemberScenarios:
    def test_a_static_member_rejoins_without_a_rebalance(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        stays, leaves = (
            client.join(topic, [topic], ConsumerOptions(protocol, instance_id=name))
            for name in "ab"
        )
        with joined_members(stays, leaves) as group_members:
            group_members.wait_until_shared(topic_partitions)
            group_members.consume_all(produce_to_all(client, topic, 10))
            group_members.commit(topic_partitions, 10)
            owned, assignment_changes = leaves.assignment(), stays.assignment_changes
            group_members.members.remove(leaves)
            leaves.leave()
            returned = client.join(topic, [topic], ConsumerOptions(protocol, instance_id="b"))
            group_members.members.append(returned)
            group_members.poll_until(
                lambda: returned.assignment() == owned, "it has its partitions back"
            )
            group_members.consume_all(produce_to_all(client, topic, 5))
            assert stays.assignment_changes == assignment_changes


class FencingScenarios:
    """In the classic protocol a new static member fences the old one."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE])
    def test_a_second_member_with_an_instance_id_fences_the_first(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        options = ConsumerOptions(protocol, instance_id="the only")
        first = client.join(topic, [topic], options)
        with joined_members(first) as group_members:
            group_members.wait_until_shared(topic_partitions)
            with joined_members(client.join(topic, [topic], options)) as newer:
                newer.wait_until_shared(topic_partitions)
                newer.poll_until(
                    lambda: (
                        commit_error(first, PartitionKey(topic, 0)) == ErrorCode.FENCED_INSTANCE_ID
                    ),
                    "the first is fenced",
                )
                assert newer.members[0].committed(PartitionKey(topic, 0)) is None


class UnreleasedScenarios:
    """In KIP-848 a new static member is rejected while the old one is alive."""

    @pytest.mark.parametrize("protocol", [Protocol.CONSUMER])
    def test_a_second_member_with_an_instance_id_is_rejected(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        options = ConsumerOptions(protocol, instance_id="the only")
        with joined_members(client.join(topic, [topic], options)) as group_members:
            group_members.wait_until_shared(topic_partitions)
            second = client.join(topic, [topic], options)
            with pytest.raises(BrokerError) as exception:
                GroupMembers([second]).poll_until(lambda: False, "it is rejected")
            assert exception.value.code == ErrorCode.UNRELEASED_INSTANCE_ID
            second.leave()
            group_members.consume_all(produce_to_all(client, topic, 5))


class MigrationScenarios:
    """A group migrates between the protocols with members of both."""

    @pytest.mark.parametrize("protocol", [Protocol.RANGE, Protocol.COOPERATIVE])
    def test_a_group_with_members_migrates_to_the_consumer_protocol_and_back(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        classic, consumer = ConsumerOptions(protocol), ConsumerOptions(Protocol.CONSUMER)
        with joined_members(client.join(topic, [topic], classic)) as group_members:
            group_members.consume_all(produce_to_all(client, topic, 10))
            group_members.commit(topic_partitions, 10)
            for options, assignor in (consumer, "uniform"), (classic, protocol.value):
                group_members.members.append(client.join(topic, [topic], options))
                group_members.wait_until_shared(topic_partitions)
                group_members.consume_all(produce_to_all(client, topic, 10))
                group_members.members.pop(0).leave()
                group_members.wait_until_shared(topic_partitions)
                group_members.consume_all(produce_to_all(client, topic, 10))
                assert client.describe_group(topic).assignor == assignor
            group_members.commit(topic_partitions, 50)
        assert min(consumed.offset for _, consumed in group_members.consumed[4 * 10 :]) >= 10


@contextmanager
def joined_members(*members: Member) -> Iterator[GroupMembers]:
    """Members that leave at the end of the block."""
    group_members = GroupMembers(list(members))
    try:
        yield group_members
    finally:
        group_members.leave()


def create_partitioned_topic(client: GroupClient, topic: str) -> set[PartitionKey]:
    client.create_topic(topic, PARTITIONS)
    return {PartitionKey(topic, partition) for partition in range(PARTITIONS)}


def produce_to_all(client: GroupClient, topic: str, count: int) -> set[bytes]:
    """Produces new records to each partition and returns their unique values."""
    sent = [
        SentRecord(b"%d" % next(NUMBERS), partition=partition)
        for partition in range(PARTITIONS)
        for _ in range(count)
    ]
    client.produce(topic, sent)
    return {record.value for record in sent if record.value}


def commit_error(member: Member, topic_partition: PartitionKey) -> int | None:
    """Returns the error code of a poll and a commit, if it is not because of a rebalance."""
    try:
        member.poll()
        member.commit({topic_partition: Committed(1)})
    except BrokerError as exception:
        return None if exception.code in REBALANCING else exception.code
    return None
