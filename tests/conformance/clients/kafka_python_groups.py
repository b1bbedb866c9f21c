"""kafka-python in groups."""

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
    DeletesGroupOffsets,
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
from tests.conformance.clients.kafka_python import KafkaPythonClient, refusals

POLL_MS = 10_000
ASSIGNORS = {
    Protocol.RANGE: RangePartitionAssignor,
    Protocol.ROUND_ROBIN: RoundRobinPartitionAssignor,
    Protocol.STICKY: StickyPartitionAssignor,
    Protocol.COOPERATIVE: CooperativeStickyAssignor,
}


class KafkaPythonMember(Member, ConsumerRebalanceListener):
    """Polls in a thread of its own, as long as it can: a join that outlives a poll may be lost.

    What was polled and not handed out yet is not committed.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer
        self.changes = 0
        self._arrived: Queue[Taken] = Queue()
        self._handed_out: dict[Place, Committed] = {}
        self._failure: BrokerError | None = None
        self._is_leaving = False
        self._thread = Thread(target=self._run)

    def subscribe(self, topics: Sequence[str]) -> None:
        if topics[0].startswith("^"):
            self.consumer.subscribe(pattern=topics[0], listener=self)
        else:
            self.consumer.subscribe(list(topics), listener=self)
        self._thread.start()

    def assign(self, places: Sequence[Place]) -> None:
        self.consumer.assign([TopicPartition(*place) for place in places])
        self._thread.start()

    def poll(self) -> list[Taken]:
        if self._failure:
            raise self._failure
        taken: list[Taken] = []
        with suppress(Empty):
            taken.append(self._arrived.get(timeout=POLL_S))
            while True:
                taken.append(self._arrived.get_nowait())
        self._handed_out |= {each.place: Committed(each.offset + 1) for each in taken}
        return taken

    def assignment(self) -> set[Place]:
        return {Place(*place) for place in self.consumer.assignment()}

    def commit(self, offsets: Mapping[Place, Committed] | None = None) -> None:
        chosen = with_offsets(offsets or dict(self._handed_out))
        with refusals():
            self.consumer.commit(chosen, timeout_ms=DEADLINE_S * 1000)

    def committed(self, place: Place) -> Committed | None:
        with refusals():
            found = self.consumer.committed(TopicPartition(*place), metadata=True)
        return found and Committed(found.offset, found.metadata)

    def position(self, place: Place) -> int:
        return self.consumer.position(TopicPartition(*place))

    def seek(self, place: Place, offset: int) -> None:
        self.consumer.seek(TopicPartition(*place), offset)

    def identity(self) -> Any:
        return self.consumer.group_metadata()

    def leave(self) -> None:
        self._is_leaving = True
        self.consumer.close()
        self._thread.join()

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.changes += 1
        for place in self._handed_out.keys() - self.assignment():
            del self._handed_out[place]

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.changes += 1

    def _run(self) -> None:
        while not self._is_leaving:
            try:
                with refusals():
                    polled = self.consumer.poll(POLL_MS)
            except BrokerError as failure:
                self._failure = failure
                return
            except Exception:
                if self._is_leaving:
                    return  # closed while it was polled
                raise
            for place, records in polled.items():
                for record in records:
                    self._arrived.put(Taken(Place(*place), record.offset, record.value))


class KafkaPythonGroups(KafkaPythonClient, DeletesGroupOffsets):
    assignors = tuple(ASSIGNORS)
    protocols = (Protocol.RANGE, Protocol.COOPERATIVE)

    def join(self, group: str, topics: Sequence[str], joining: Joining) -> Member:
        settings: dict[str, Any] = {
            "partition_assignment_strategy": [ASSIGNORS[joining.protocol]],
            "group_instance_id": joining.instance_id,
            "enable_auto_commit": joining.commits_by_itself,
            "auto_commit_interval_ms": 100,
            "isolation_level": isolation(joining.reads_committed),
        }
        member = KafkaPythonMember(self._consumer_of(group, settings))
        member.subscribe(topics)
        return member

    def consumer_of(
        self, group: str, places: Sequence[Place], *, reads_committed: bool = False
    ) -> Member:
        settings = {
            "enable_auto_commit": False,
            "isolation_level": isolation(reads_committed),
        }
        member = KafkaPythonMember(self._consumer_of(group, settings))
        member.assign(places)
        return member

    def groups(self) -> dict[str, Listed]:
        return {
            each["group_id"]: Listed(each["group_state"], each["protocol_type"])
            for each in self._admin.list_groups()
        }

    def describe_group(self, group: str) -> GroupDescription:
        described = self._admin.describe_groups([group])[group]
        assert described["error"] is None, described["error"]
        return GroupDescription(
            described["group_state"],
            described["protocol_data"],
            [
                MemberDescription(
                    each["member_id"],
                    each["client_id"],
                    each["group_instance_id"],
                    frozenset(
                        Place(topic["topic"], partition)
                        for topic in (each["member_assignment"] or {}).get(
                            "assigned_partitions", []
                        )
                        for partition in topic["partitions"]
                    ),
                )
                for each in described["members"]
            ],
        )

    def group_offsets(self, group: str) -> dict[Place, Committed]:
        with refusals():
            found = self._admin.list_group_offsets(group)[group]
        return {Place(*place): Committed(at.offset, at.metadata) for place, at in found.items()}

    def alter_group_offsets(self, group: str, offsets: Mapping[Place, Committed]) -> None:
        refuse_any(self._admin.alter_group_offsets(group, with_offsets(offsets)))

    def delete_group(self, group: str) -> None:
        result = self._admin.delete_groups([group])[group]
        if result != "OK":
            raise BrokerError(None, result)

    def delete_group_offset(self, group: str, place: Place) -> None:
        with refusals():
            refuse_any(self._admin.delete_group_offsets(group, [TopicPartition(*place)]))

    def remove_static_member(self, group: str, instance_id: str) -> None:
        member = MemberToRemove(group_instance_id=instance_id)
        with refusals():
            refuse_any(self._admin.remove_group_members(group, [member]))

    def _consumer_of(self, group: str, settings: Mapping[str, Any]) -> KafkaConsumer:
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


def with_offsets(offsets: Mapping[Place, Committed]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(*place): OffsetAndMetadata(committed.offset, committed.metadata, -1)
        for place, committed in offsets.items()
    }


def refuse_any(errors: Mapping[Any, type[Exception]]) -> None:
    for error in errors.values():
        if error is not NoError:
            raise BrokerError(error.errno, error.__name__)
