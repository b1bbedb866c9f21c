"""Adapter for groups of confluent-kafka."""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from tests.conformance.clients.client import DEADLINE_S, BrokerError, ErrorCode
from tests.conformance.clients.confluent import ConfluentClient, single_result, translated_errors
from tests.conformance.clients.group_client import (
    POLL_S,
    Committed,
    ConsumedRecord,
    ConsumerOptions,
    GroupAdminClient,
    GroupDescription,
    GroupListing,
    Member,
    MemberDescription,
    PartitionKey,
    Protocol,
    isolation_level_name,
)

NO_OFFSET = -1001


class ConfluentMember(Member):
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.assignment_changes = 0

    def subscribe(self, topics: Sequence[str]) -> None:
        self.consumer.subscribe(list(topics), on_assign=self._changed, on_revoke=self._changed)

    def poll(self) -> list[ConsumedRecord]:
        consumed = []
        for message in self.consumer.consume(500, timeout=POLL_S):
            if error := message.error():
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue  # a topic of the pattern was deleted; the consumer continues
                raise BrokerError(broker_error_code(error), error.str())
            topic_partition = PartitionKey(message.topic(), message.partition())
            consumed.append(ConsumedRecord(topic_partition, message.offset(), message.value()))
        return consumed

    def assignment(self) -> set[PartitionKey]:
        return {
            PartitionKey(assigned.topic, assigned.partition)
            for assigned in self.consumer.assignment()
        }

    def commit(self, offsets: Mapping[PartitionKey, Committed] | None = None) -> None:
        try:
            if offsets is None:
                committed = self.consumer.commit(asynchronous=False)
            else:
                committed = self.consumer.commit(offsets=with_offsets(offsets), asynchronous=False)
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() != KafkaError._NO_OFFSET:  # there is nothing to commit otherwise
                raise BrokerError(broker_error_code(error), error.str()) from exception
        else:
            raise_first_error(committed or [])

    def committed(self, topic_partition: PartitionKey) -> Committed | None:
        with translated_errors():
            (result,) = self.consumer.committed(
                [TopicPartition(*topic_partition)], timeout=DEADLINE_S
            )
        raise_first_error([result])
        return (
            None if result.offset == NO_OFFSET else Committed(result.offset, result.metadata or "")
        )

    def position(self, topic_partition: PartitionKey) -> int:
        (result,) = self.consumer.position([TopicPartition(*topic_partition)])
        return result.offset

    def seek(self, topic_partition: PartitionKey, offset: int) -> None:
        with translated_errors():
            self.consumer.seek(TopicPartition(*topic_partition, offset))

    def group_metadata(self) -> Any:
        return self.consumer.consumer_group_metadata()

    def leave(self) -> None:
        self.consumer.close()

    def _changed(self, *_: Any) -> None:
        self.assignment_changes += 1


class ConfluentGroups(ConfluentClient, GroupAdminClient):
    assignors = (Protocol.RANGE, Protocol.ROUND_ROBIN, Protocol.COOPERATIVE, Protocol.CONSUMER)
    protocols = (Protocol.RANGE, Protocol.COOPERATIVE, Protocol.CONSUMER)

    def join(self, group: str, topics: Sequence[str], options: ConsumerOptions) -> Member:
        settings: dict[str, Any] = {
            "auto.offset.reset": "earliest",
            "isolation.level": isolation_level_name(options.reads_committed),
        }
        if options.protocol is Protocol.CONSUMER:
            settings["group.protocol"] = "consumer"
        else:
            settings["partition.assignment.strategy"] = options.protocol.value
            settings["heartbeat.interval.ms"] = 100
            settings["session.timeout.ms"] = 6_000
        if options.instance_id:
            settings["group.instance.id"] = options.instance_id
        if options.auto_commit:
            settings["enable.auto.commit"] = True
            settings["auto.commit.interval.ms"] = 100
        member = ConfluentMember(self._new_consumer(group, settings))
        member.subscribe(topics)
        return member

    def assigned_consumer(
        self,
        group: str,
        topic_partitions: Sequence[PartitionKey],
        *,
        reads_committed: bool = False,
    ) -> Member:
        settings = {
            "auto.offset.reset": "earliest",
            "isolation.level": isolation_level_name(reads_committed),
        }
        member = ConfluentMember(self._new_consumer(group, settings))
        member.consumer.assign(
            [TopicPartition(*topic_partition) for topic_partition in topic_partitions]
        )
        return member

    def groups(self) -> dict[str, GroupListing]:
        response = self._admin.list_consumer_groups(request_timeout=DEADLINE_S).result(DEADLINE_S)
        assert not response.errors, response.errors
        return {
            listing.group_id: GroupListing(to_camel_case(listing.state.name))
            for listing in response.valid
        }

    def describe_group(self, group: str) -> GroupDescription:
        described = single_result(self._admin.describe_consumer_groups([group]))
        return GroupDescription(
            to_camel_case(described.state.name),
            described.partition_assignor,
            [
                MemberDescription(
                    member.member_id,
                    member.client_id,
                    member.group_instance_id,
                    frozenset(
                        PartitionKey(topic_partition.topic, topic_partition.partition)
                        for topic_partition in member.assignment.topic_partitions
                    ),
                )
                for member in described.members
            ],
        )

    def group_offsets(self, group: str) -> dict[PartitionKey, Committed]:
        requested = [ConsumerGroupTopicPartitions(group)]
        response = single_result(self._admin.list_consumer_group_offsets(requested))
        raise_first_error(response.topic_partitions)
        return {
            PartitionKey(partition.topic, partition.partition): Committed(
                partition.offset, partition.metadata or ""
            )
            for partition in response.topic_partitions
        }

    def alter_group_offsets(self, group: str, offsets: Mapping[PartitionKey, Committed]) -> None:
        requested = [ConsumerGroupTopicPartitions(group, with_offsets(offsets))]
        response = single_result(self._admin.alter_consumer_group_offsets(requested))
        raise_first_error(response.topic_partitions)

    def delete_group(self, group: str) -> None:
        single_result(self._admin.delete_consumer_groups([group]))

    def _new_consumer(self, group: str, settings: Mapping[str, Any]) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 200,
                **settings,
            }
        )


def with_offsets(offsets: Mapping[PartitionKey, Committed]) -> list[TopicPartition]:
    return [
        TopicPartition(*topic_partition, committed.offset, metadata=committed.metadata)
        for topic_partition, committed in offsets.items()
    ]


def raise_first_error(topic_partitions: Sequence[TopicPartition]) -> None:
    for topic_partition in topic_partitions:
        if topic_partition.error:
            raise BrokerError(topic_partition.error.code(), topic_partition.error.str())


def to_camel_case(name: str) -> str:
    """Returns the name of a state as in the protocol."""
    return {"PREPARING_REBALANCING": "PreparingRebalance"}.get(name, name.title().replace("_", ""))


def broker_error_code(error: KafkaError) -> int:
    """Returns the broker's error code; for a fatal error the library has it in the text only."""
    if error.code() == KafkaError._FATAL:
        for code in ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID:
            if KafkaError(code).str() in error.str():
                return code
    return error.code()
