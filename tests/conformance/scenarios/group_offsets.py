"""Committed offsets, and administration of groups."""

import time

from tests.conformance.clients.client import ErrorCode, SentRecord, raises_error
from tests.conformance.clients.group_client import (
    Committed,
    ConsumerOptions,
    GroupAdminClient,
    GroupClient,
    GroupOffsetAdminClient,
    PartitionKey,
    Protocol,
)
from tests.conformance.scenarios.groups import (
    PARTITIONS,
    create_partitioned_topic,
    joined_members,
    produce_to_all,
)
from tests.wait import wait_until

MINUTE_MS = 60_000


class OffsetScenarios:
    def test_a_consumer_can_commit_without_joining(self, client: GroupClient, topic: str) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        produce_to_all(client, topic, 10)
        selected = PartitionKey(topic, 1)
        with joined_members(client.assigned_consumer(topic, [selected])) as group_members:
            (consumer,) = group_members.members
            assert consumer.committed(selected) is None
            group_members.poll_until(
                lambda: len(group_members.consumed) == 10,
                "all records of the partition are consumed",
            )
            consumer.commit()
            assert consumer.committed(selected) == Committed(10)
            assert all(
                consumer.committed(topic_partition) is None
                for topic_partition in topic_partitions - {selected}
            )
        produce_to_all(client, topic, 1)
        with joined_members(client.assigned_consumer(topic, [selected])) as group_members:
            group_members.poll_until(lambda: group_members.consumed, "the next record is consumed")
        assert [consumed.offset for _, consumed in group_members.consumed] == [10]

    def test_a_commit_keeps_its_metadata(self, client: GroupClient, topic: str) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        committed = {
            PartitionKey(topic, 0): Committed(3, "reason ✓"),
            PartitionKey(topic, 1): Committed(0),
            PartitionKey(topic, 2): Committed(2**40, "x" * 4000),
        }
        with joined_members(
            client.assigned_consumer(topic, list(topic_partitions))
        ) as group_members:
            group_members.members[0].commit(committed)
            assert client.group_offsets(topic) == committed
            with raises_error(ErrorCode.OFFSET_METADATA_TOO_LARGE):
                group_members.members[0].commit({PartitionKey(topic, 3): Committed(1, "x" * 5000)})
        assert client.group_offsets(topic) == committed

    def test_a_commit_can_be_lower_or_higher_than_the_last_one(
        self, client: GroupClient, topic: str
    ) -> None:
        create_partitioned_topic(client, topic)
        produce_to_all(client, topic, 10)
        topic_partition = PartitionKey(topic, 0)
        with joined_members(client.assigned_consumer(topic, [topic_partition])) as group_members:
            (consumer,) = group_members.members
            group_members.poll_until(
                lambda: len(group_members.consumed) == 10, "all records are consumed"
            )
            assert consumer.position(topic_partition) == 10
            for offset in 7, 2, 9:
                consumer.commit({topic_partition: Committed(offset)})
                assert consumer.committed(topic_partition) == Committed(offset)
            consumer.seek(topic_partition, 4)
            group_members.poll_until(
                lambda: len(group_members.consumed) == 16,
                "the records from there are consumed again",
            )
            assert group_members.consumed[10][1].offset == 4
            assert consumer.committed(topic_partition) == Committed(9)

    def test_a_group_can_start_at_the_offsets_of_a_time(
        self, client: GroupClient, topic: str
    ) -> None:
        """As an operator resets a group: find the offsets of a time and commit them."""
        client.create_topic(topic)
        start_ms = int(time.time() * 1000) - 10 * MINUTE_MS
        minutes = range(10)
        client.produce(
            topic, [SentRecord(b"%d" % n, timestamp_ms=start_ms + n * MINUTE_MS) for n in minutes]
        )
        topic_partition, offset_of_time = (
            PartitionKey(topic, 0),
            client.offset_for_time(topic, start_ms + 6 * MINUTE_MS),
        )
        assert offset_of_time == 6
        with joined_members(client.assigned_consumer(topic, [topic_partition])) as group_members:
            group_members.members[0].commit({topic_partition: Committed(offset_of_time)})
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(client.protocols[0]))
        ) as group_members:
            group_members.consume_all({b"6", b"7", b"8", b"9"})
        assert len(group_members.consumed) == 4

    def test_the_lag_is_the_number_of_uncommitted_records(
        self, client: GroupClient, topic: str
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        values = produce_to_all(client, topic, 10)
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(client.protocols[0]))
        ) as group_members:
            group_members.consume_all(values)
            group_members.commit(topic_partitions, 10)
            produce_to_all(client, topic, 3)
            lags = [
                client.watermarks(topic, partition=topic_partition.partition)[1] - committed.offset
                for topic_partition, committed in client.group_offsets(topic).items()
            ]
        assert lags == [3] * PARTITIONS


class GroupListScenarios:
    def test_a_group_is_listed_and_described(
        self, client: GroupClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        with joined_members(
            *(client.join(topic, [topic], ConsumerOptions(protocol)) for _ in range(2))
        ) as group_members:
            group_members.wait_until_shared(topic_partitions)
            group_members.poll_until(
                lambda: client.describe_group(topic).state == "Stable", "it is stable"
            )
            assert client.groups()[topic].state in ("Stable", None)
            assert client.groups()[topic].protocol_type in ("consumer", None)
            described = client.describe_group(topic)
            assert described.assignor == ("uniform" if protocol == "consumer" else protocol)
            assert len({described_member.member_id for described_member in described.members}) == 2
            assert sorted(
                map(sorted, (described_member.assignment for described_member in described.members))
            ) == sorted(map(sorted, (member.assignment() for member in group_members.members)))
        wait_until(lambda: not client.describe_group(topic).members, "they have left")
        assert client.groups()[topic].state in ("Empty", None)


class GroupChangeScenarios:
    def test_offsets_are_altered_only_without_members(
        self, client: GroupAdminClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        values = produce_to_all(client, topic, 10)
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(protocol))
        ) as group_members:
            group_members.consume_all(values)
            group_members.commit(topic_partitions, 10)
            with raises_error(ErrorCode.UNKNOWN_MEMBER_ID):
                client.alter_group_offsets(topic, {PartitionKey(topic, 0): Committed(0)})
        client.alter_group_offsets(
            topic,
            {
                PartitionKey(topic, 0): Committed(4),
                PartitionKey(topic, 1): Committed(8),
            },
        )
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(protocol))
        ) as group_members:
            group_members.poll_until(
                lambda: len(group_members.consumed) >= 8, "the records after them are consumed"
            )
        assert {
            (consumed.topic_partition.partition, consumed.offset)
            for _, consumed in group_members.consumed
        } == {
            *((0, offset) for offset in range(4, 10)),
            *((1, offset) for offset in range(8, 10)),
        }

    def test_a_group_is_deleted_only_without_members(
        self, client: GroupAdminClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(protocol))
        ) as group_members:
            group_members.wait_until_shared(topic_partitions)
            with raises_error(ErrorCode.NON_EMPTY_GROUP):
                client.delete_group(topic)
            group_members.consume_all(produce_to_all(client, topic, 1))
            group_members.commit(topic_partitions, 1)
        client.delete_group(topic)
        assert topic not in client.groups()
        assert client.group_offsets(topic) == {}
        with raises_error(ErrorCode.GROUP_ID_NOT_FOUND):
            client.delete_group(topic)


class OffsetDeletionScenarios:
    def test_an_offset_is_deleted_only_of_topics_without_subscribers(
        self, client: GroupOffsetAdminClient, topic: str
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        other = PartitionKey(f"{topic}-other", 0)
        client.create_topic(other.topic)
        with joined_members(client.assigned_consumer(topic, [other])) as group_members:
            group_members.members[0].commit({other: Committed(5)})
        with joined_members(
            client.join(topic, [topic], ConsumerOptions(Protocol.RANGE))
        ) as group_members:
            group_members.consume_all(produce_to_all(client, topic, 1))
            group_members.commit(topic_partitions, 1)
            with raises_error(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
                client.delete_group_offset(topic, PartitionKey(topic, 0))
            client.delete_group_offset(topic, other)
            assert client.group_offsets(topic).keys() == topic_partitions
        client.delete_group_offset(topic, PartitionKey(topic, 0))
        assert client.group_offsets(topic).keys() == topic_partitions - {PartitionKey(topic, 0)}

    def test_a_static_member_is_removed(self, client: GroupOffsetAdminClient, topic: str) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        stays = client.join(topic, [topic], ConsumerOptions(Protocol.RANGE, instance_id="stays"))
        goes = client.join(topic, [topic], ConsumerOptions(Protocol.RANGE, instance_id="goes"))
        with joined_members(stays, goes) as group_members:
            group_members.wait_until_shared(topic_partitions)
            group_members.members.remove(goes)
            goes.leave()
            assert {member.instance_id for member in client.describe_group(topic).members} == {
                "stays",
                "goes",
            }
            client.remove_static_member(topic, "goes")
            group_members.wait_until_shared(topic_partitions)
