"""confluent-kafka in groups."""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from tests.conformance.clients.client import DEADLINE_S, BrokerError, Code
from tests.conformance.clients.confluent import ConfluentClient, only_result, refusals
from tests.conformance.clients.group_client import (
    POLL_S,
    ChangesGroups,
    Committed,
    GroupDescription,
    Joining,
    Listed,
    Member,
    MemberDescription,
    Place,
    Protocol,
    Taken,
    isolation,
)

NO_OFFSET = -1001


class ConfluentMember(Member):
    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.changes = 0

    def subscribe(self, topics: Sequence[str]) -> None:
        self.consumer.subscribe(list(topics), on_assign=self._changed, on_revoke=self._changed)

    def poll(self) -> list[Taken]:
        taken = []
        for message in self.consumer.consume(500, timeout=POLL_S):
            if error := message.error():
                if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue  # told of a topic deleted under a pattern; the consumer goes on
                raise BrokerError(code_of(error), error.str())
            place = Place(message.topic(), message.partition())
            taken.append(Taken(place, message.offset(), message.value()))
        return taken

    def assignment(self) -> set[Place]:
        return {Place(each.topic, each.partition) for each in self.consumer.assignment()}

    def commit(self, offsets: Mapping[Place, Committed] | None = None) -> None:
        try:
            if offsets is None:
                committed = self.consumer.commit(asynchronous=False)
            else:
                committed = self.consumer.commit(offsets=with_offsets(offsets), asynchronous=False)
        except KafkaException as refused:
            error = refused.args[0]
            if error.code() != KafkaError._NO_OFFSET:  # else there is nothing to commit
                raise BrokerError(code_of(error), error.str()) from refused
        else:
            refuse_any(committed or [])

    def committed(self, place: Place) -> Committed | None:
        with refusals():
            (found,) = self.consumer.committed([TopicPartition(*place)], timeout=DEADLINE_S)
        refuse_any([found])
        return None if found.offset == NO_OFFSET else Committed(found.offset, found.metadata or "")

    def position(self, place: Place) -> int:
        (found,) = self.consumer.position([TopicPartition(*place)])
        return found.offset

    def seek(self, place: Place, offset: int) -> None:
        with refusals():
            self.consumer.seek(TopicPartition(*place, offset))

    def identity(self) -> Any:
        return self.consumer.consumer_group_metadata()

    def leave(self) -> None:
        self.consumer.close()

    def _changed(self, *_: Any) -> None:
        self.changes += 1


class ConfluentGroups(ConfluentClient, ChangesGroups):
    assignors = (Protocol.RANGE, Protocol.ROUND_ROBIN, Protocol.COOPERATIVE, Protocol.CONSUMER)
    protocols = (Protocol.RANGE, Protocol.COOPERATIVE, Protocol.CONSUMER)

    def join(self, group: str, topics: Sequence[str], joining: Joining) -> Member:
        settings: dict[str, Any] = {
            "auto.offset.reset": "earliest",
            "isolation.level": isolation(joining.reads_committed),
        }
        if joining.protocol is Protocol.CONSUMER:
            settings["group.protocol"] = "consumer"
        else:
            settings["partition.assignment.strategy"] = joining.protocol.value
            settings["heartbeat.interval.ms"] = 100
            settings["session.timeout.ms"] = 6_000
        if joining.instance_id:
            settings["group.instance.id"] = joining.instance_id
        if joining.commits_by_itself:
            settings["enable.auto.commit"] = True
            settings["auto.commit.interval.ms"] = 100
        member = ConfluentMember(self._consumer_of(group, settings))
        member.subscribe(topics)
        return member

    def consumer_of(
        self, group: str, places: Sequence[Place], *, reads_committed: bool = False
    ) -> Member:
        settings = {"auto.offset.reset": "earliest", "isolation.level": isolation(reads_committed)}
        member = ConfluentMember(self._consumer_of(group, settings))
        member.consumer.assign([TopicPartition(*place) for place in places])
        return member

    def groups(self) -> dict[str, Listed]:
        answer = self._admin.list_consumer_groups(request_timeout=DEADLINE_S).result(DEADLINE_S)
        assert not answer.errors, answer.errors
        return {each.group_id: Listed(camel(each.state.name)) for each in answer.valid}

    def describe_group(self, group: str) -> GroupDescription:
        described = only_result(self._admin.describe_consumer_groups([group]))
        return GroupDescription(
            camel(described.state.name),
            described.partition_assignor,
            [
                MemberDescription(
                    each.member_id,
                    each.client_id,
                    each.group_instance_id,
                    frozenset(
                        Place(place.topic, place.partition)
                        for place in each.assignment.topic_partitions
                    ),
                )
                for each in described.members
            ],
        )

    def group_offsets(self, group: str) -> dict[Place, Committed]:
        asked = [ConsumerGroupTopicPartitions(group)]
        answer = only_result(self._admin.list_consumer_group_offsets(asked))
        refuse_any(answer.topic_partitions)
        return {
            Place(each.topic, each.partition): Committed(each.offset, each.metadata or "")
            for each in answer.topic_partitions
        }

    def alter_group_offsets(self, group: str, offsets: Mapping[Place, Committed]) -> None:
        asked = [ConsumerGroupTopicPartitions(group, with_offsets(offsets))]
        answer = only_result(self._admin.alter_consumer_group_offsets(asked))
        refuse_any(answer.topic_partitions)

    def delete_group(self, group: str) -> None:
        only_result(self._admin.delete_consumer_groups([group]))

    def _consumer_of(self, group: str, settings: Mapping[str, Any]) -> Consumer:
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


def with_offsets(offsets: Mapping[Place, Committed]) -> list[TopicPartition]:
    return [
        TopicPartition(*place, committed.offset, metadata=committed.metadata)
        for place, committed in offsets.items()
    ]


def refuse_any(places: Sequence[TopicPartition]) -> None:
    for place in places:
        if place.error:
            raise BrokerError(place.error.code(), place.error.str())


def camel(name: str) -> str:
    """PREPARING_REBALANCING as the protocol writes it."""
    return {"PREPARING_REBALANCING": "PreparingRebalance"}.get(name, name.title().replace("_", ""))


def code_of(error: KafkaError) -> int:
    """The broker's error; where it ended the consumer, the library tells it in words only."""
    if error.code() == KafkaError._FATAL:
        for code in Code.FENCED_INSTANCE_ID, Code.UNRELEASED_INSTANCE_ID:
            if KafkaError(code).str() in error.str():
                return code
    return error.code()
