"""Adapter for groups of kafka-python."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import NoError
from tests.conformance.clients.client import DEADLINE_S, BrokerError
from tests.conformance.clients.group_client import (
    POLL_S,
    Committed,
    ConsumedRecord,
    ConsumerOptions,
    GroupDescription,
    GroupListing,
    GroupOffsetAdminClient,
    Member,
    MemberDescription,
    PartitionKey,
    Protocol,
    isolation_level_name,
)
from tests.conformance.clients.kafka_python import KafkaPythonClient, translated_errors

POLL_MS = 10_000
ASSIGNORS = {
    Protocol.RANGE: RangePartitionAssignor,
    Protocol.ROUND_ROBIN: RoundRobinPartitionAssignor,
    Protocol.STICKY: StickyPartitionAssignor,
    Protocol.COOPERATIVE: CooperativeStickyAssignor,
}


class KafkaPythonMember(Member, ConsumerRebalanceListener):
    """A member that polls in a thread, for long: a join that outlives a poll can be lost.

    Only records that `poll` has returned are committed.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        self.assignment_changes = 0
        self._fetched_records: Queue[ConsumedRecord] = Queue()
        self._polled_offsets: dict[PartitionKey, Committed] = {}
        self._error: BrokerError | None = None
        self._is_leaving = False
        self._thread = Thread(target=self._run)

    def subscribe(self, topics: Sequence[str]) -> None:
        if topics[0].startswith("^"):
            self.consumer.subscribe(pattern=topics[0], listener=self)
        else:
            self.consumer.subscribe(list(topics), listener=self)
        self._thread.start()

    def assign(self, topic_partitions: Sequence[PartitionKey]) -> None:
        self.consumer.assign(
            [TopicPartition(*topic_partition) for topic_partition in topic_partitions]
        )
        self._thread.start()

    def poll(self) -> list[ConsumedRecord]:
        if self._error:
            raise self._error
        consumed: list[ConsumedRecord] = []
        with suppress(Empty):
            consumed.append(self._fetched_records.get(timeout=POLL_S))
            while True:
                consumed.append(self._fetched_records.get_nowait())
        self._polled_offsets |= {
            record.topic_partition: Committed(record.offset + 1) for record in consumed
        }
        return consumed

    def assignment(self) -> set[PartitionKey]:
        return {PartitionKey(*topic_partition) for topic_partition in self.consumer.assignment()}

    def commit(self, offsets: Mapping[PartitionKey, Committed] | None = None) -> None:
        selected = with_offsets(offsets or dict(self._polled_offsets))
        with translated_errors():
            self.consumer.commit(selected, timeout_ms=DEADLINE_S * 1000)

    def committed(self, topic_partition: PartitionKey) -> Committed | None:
        with translated_errors():
            result = self.consumer.committed(TopicPartition(*topic_partition), metadata=True)
        return result and Committed(result.offset, result.metadata)

    def position(self, topic_partition: PartitionKey) -> int:
        return self.consumer.position(TopicPartition(*topic_partition))

    def seek(self, topic_partition: PartitionKey, offset: int) -> None:
        self.consumer.seek(TopicPartition(*topic_partition), offset)

    def group_metadata(self) -> Any:
        return self.consumer.group_metadata()

    def leave(self) -> None:
        self._is_leaving = True
        self.consumer.close()
        self._thread.join()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.assignment_changes += 1
        for topic_partition in self._polled_offsets.keys() - self.assignment():
            del self._polled_offsets[topic_partition]

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.assignment_changes += 1

    def _run(self) -> None:
        while not self._is_leaving:
            try:
                with translated_errors():
                    polled = self.consumer.poll(POLL_MS)
            except BrokerError as failure:
                self._error = failure
                return
            except Exception:
                if self._is_leaving:
                    return  # closed during the poll
                raise
            for topic_partition, records in polled.items():
                for record in records:
                    self._fetched_records.put(
                        ConsumedRecord(PartitionKey(*topic_partition), record.offset, record.value)
                    )


class KafkaPythonGroups(KafkaPythonClient, GroupOffsetAdminClient):
    assignors = tuple(ASSIGNORS)
    protocols = (Protocol.RANGE, Protocol.COOPERATIVE)

    def join(self, group: str, topics: Sequence[str], options: ConsumerOptions) -> Member:
        settings: dict[str, Any] = {
            "partition_assignment_strategy": [ASSIGNORS[options.protocol]],
            "group_instance_id": options.instance_id,
            "enable_auto_commit": options.auto_commit,
            "auto_commit_interval_ms": 100,
            "isolation_level": isolation_level_name(options.reads_committed),
        }
        member = KafkaPythonMember(self._new_consumer(group, settings))
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
            "enable_auto_commit": False,
            "isolation_level": isolation_level_name(reads_committed),
        }
        member = KafkaPythonMember(self._new_consumer(group, settings))
        member.assign(topic_partitions)
        return member

    def groups(self) -> dict[str, GroupListing]:
        return {
            list_group["group_id"]: GroupListing(
                list_group["group_state"], list_group["protocol_type"]
            )
            for list_group in self._admin.list_groups()
        }

    def describe_group(self, group: str) -> GroupDescription:
        described = self._admin.describe_groups([group])[group]
        assert described["error"] is None, described["error"]
        return GroupDescription(
            described["group_state"],
            described["protocol_data"],
            [
                MemberDescription(
                    setting["member_id"],
                    setting["client_id"],
                    setting["group_instance_id"],
                    frozenset(
                        PartitionKey(topic["topic"], partition)
                        for topic in (setting["member_assignment"] or {}).get(
                            "assigned_partitions", []
                        )
                        for partition in topic["partitions"]
                    ),
                )
                for setting in described["members"]
            ],
        )

    def group_offsets(self, group: str) -> dict[PartitionKey, Committed]:
        with translated_errors():
            offsets = self._admin.list_group_offsets(group)[group]
        return {
            PartitionKey(*topic_partition): Committed(at.offset, at.metadata)
            for topic_partition, at in offsets.items()
        }

    def alter_group_offsets(self, group: str, offsets: Mapping[PartitionKey, Committed]) -> None:
        raise_first_error(self._admin.alter_group_offsets(group, with_offsets(offsets)))

    def delete_group(self, group: str) -> None:
        result = self._admin.delete_groups([group])[group]
        if result != "OK":
            raise BrokerError(None, result)

    def delete_group_offset(self, group: str, topic_partition: PartitionKey) -> None:
        with translated_errors():
            raise_first_error(
                self._admin.delete_group_offsets(group, [TopicPartition(*topic_partition)])
            )

    def remove_static_member(self, group: str, instance_id: str) -> None:
        member = MemberToRemove(group_instance_id=instance_id)
        with translated_errors():
            raise_first_error(self._admin.remove_group_members(group, [member]))

    def _new_consumer(self, group: str, settings: Mapping[str, Any]) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
            metadata_max_age_ms=200,
            heartbeat_interval_ms=100,
            session_timeout_ms=6_000,
            **settings,
        )


def with_offsets(
    offsets: Mapping[PartitionKey, Committed],
) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*topic_partition): OffsetAndMetadata(
            committed.offset, committed.metadata, -1
        )
        for topic_partition, committed in offsets.items()
    }


def raise_first_error(errors: Mapping[Any, type[Exception]]) -> None:
    for error in errors.values():
        if error is not NoError:
            raise BrokerError(error.errno, error.__name__)
